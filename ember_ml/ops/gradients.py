"""Identity functions that control gradients."""

from __future__ import annotations

from ember_ml._core.dispatch import unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["stop_gradient"]


@unary
def stop_gradient(x: TensorLike) -> Tensor:
    """Return x as a constant: no gradient flows through the result.

    Args:
        x: Input tensor.
    """


@unary
def alias(x: TensorLike) -> Tensor:
    """Return x as a separate tensor, whose gradient differs from that of x.

    Args:
        x: Input tensor.
    """
