"""The base of the layers."""

from __future__ import annotations

from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.module import Module


class Layer(Module):
    """A module that maps a tensor of features to another: (..., features) -> (..., features)."""

    def check_features(self, x: Tensor, features: int, axis: int = -1) -> None:
        """Raise a ShapeError that names the layer if x has another number of features."""
        if x.ndim == 0 or x.shape[axis] != features:
            raise ShapeError(
                f"{type(self).__name__} takes {features} features along axis {axis}; the input "
                f"has the shape {x.shape}"
            )
