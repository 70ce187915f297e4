"""A module that is a whole model."""

from __future__ import annotations

import os
from typing import Any, Self

from ember_ml.nn.module import Module


class Model(Module):
    """A whole model: a module that saves and loads itself, and knows what it costs."""

    def flops(self, *inputs: Any) -> int:
        """The floating-point operations of one forward; see `ember_ml.nn.flops.count_flops`.

        Args:
            inputs: tensors, or shapes of float tensors, for the forward.

        Example:
            >>> model = nn.models.LanguageModel("mlp[in_features=16]", 64, 16)
            >>> model.flops(tensor.array([[1, 2, 3]])) > 2 * 3 * (model.num_parameters() - 64 * 16)
            True
        """
        from ember_ml.nn.flops import count_flops

        return count_flops(self, *inputs)

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
