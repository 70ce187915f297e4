"""Values that gradients pass, or do not."""

from __future__ import annotations

from ember_ml._core.dispatch import unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["stop_gradient"]


@unary
def stop_gradient(x: TensorLike) -> Tensor:
    """The value of x, a constant to every gradient."""


@unary
def alias(x: TensorLike) -> Tensor:
    """The value of x as a tensor of its own, to which a gradient can be told apart from x's."""
