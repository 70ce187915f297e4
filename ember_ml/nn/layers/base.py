"""The base class of layers."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import float32
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.nn.module import Module


class Layer(Module):
    """Module that maps features to features: (..., features) -> (..., features)."""

    def check_tensor(self, x: Tensor) -> None:
        """Raise an ArgumentTypeError unless x is a tensor.

        Args:
            x: The input.
        """
        if not isinstance(x, EmberTensor):
            raise ArgumentTypeError(
                f"{type(self).__name__}: expected a tensor, got {type(x).__name__}"
            )

    def check_features(self, x: Tensor, features: int, axis: int = -1) -> None:
        """Raise a ShapeError unless x has the given number of features.

        Args:
            x: The input.
            features: Expected number of features.
            axis: Axis of the features. Default: -1.
        """
        self.check_tensor(x)
        if x.ndim == 0 or x.shape[axis] != features:
            raise ShapeError(
                f"{type(self).__name__}: expected {features} features along axis {axis}, got an "
                f"input of shape {x.shape}"
            )


def upcast_half(x: Tensor) -> Tensor:
    """Return x in float32 if it has half precision; otherwise x itself."""
    return ops.astype(x, float32) if x.dtype.bits == 16 else x
