"""The base class of the models."""

from __future__ import annotations

import os
from typing import Self

from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import TensorLike
from ember_ml.nn import checkpoint
from ember_ml.nn.flops import count_flops
from ember_ml.nn.module import Module


class Model(Module):
    """Module that can be saved, loaded and measured as a whole."""

    def flops(self, *inputs: TensorLike) -> int:
        """Return the number of floating-point operations of one forward pass.

        Args:
            inputs: Arguments of the forward pass: tensors, or shapes of float tensors. See
                `ember_ml.nn.flops.count_flops`.

        Example:
            >>> model = nn.models.LanguageModel("mlp[in_features=16]", 64, 16)
            >>> model.flops(tensor.array([[1, 2, 3]])) > 2 * 3 * (model.num_parameters() - 64 * 16)
            True
        """
        return count_flops(self, *inputs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder; see `ember_ml.save`.

        Args:
            path: The folder to create or replace.
        """
        checkpoint.save(self, path)

    def save_pretrained(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder: the same as `save`."""
        self.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        backend: str | None = None,
        into: Module | None = None,
    ) -> Self:
        """Return the model saved in a folder; see `ember_ml.load`.

        Args:
            path: The folder.
            backend: Backend of the model. Default: the active backend.
            into: Model to load the values into, instead of creating one.

        Raises:
            CheckpointError: If the folder holds a model of another class.
        """
        if into is not None and not isinstance(into, cls):
            raise ArgumentTypeError(
                f"{cls.__name__}.load: into must be a {cls.__name__}, not a {type(into).__name__}"
            )
        from ember_ml.nn.models.loading import load  # it imports the models of this package

        model = load(path, backend=backend, into=into)
        if not isinstance(model, cls):
            raise checkpoint.CheckpointError(
                f"{path} holds a {type(model).__name__}, not a {cls.__name__}"
            )
        return model

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        backend: str | None = None,
        into: Module | None = None,
    ) -> Self:
        """Return the model saved in a folder: the same as `load`."""
        return cls.load(path, backend=backend, into=into)
