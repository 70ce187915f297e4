"""A module that is a whole model."""

from __future__ import annotations

import os
from typing import Any, Self

from ember_ml.nn.module import Module


class Model(Module):
    """A whole model: a module that saves and loads itself."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a folder, from which `load` builds it anew; see `ember_ml.save`."""
        from ember_ml.nn import checkpoint

        checkpoint.save(self, path)

    def save_pretrained(self, path: str | os.PathLike[str]) -> None:
        """The same as `save`, by the name that it has elsewhere."""
        self.save(path)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """The same as `load`, by the name that it has elsewhere."""
        return cls.load(path, **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """The model that was saved in a folder; see `ember_ml.load`."""
        from ember_ml.nn import checkpoint

        made = checkpoint.load(path, **options)
        if not isinstance(made, cls):
            raise checkpoint.CheckpointError(
                f"{path} holds a {type(made).__name__}, not a {cls.__name__}"
            )
        return made
