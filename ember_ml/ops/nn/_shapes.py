"""Shape checks of composite ops."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor

__all__: list[str] = []


def along(op: str, name: str, vector: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return a vector reshaped to broadcast along an axis of x."""
    length = x.shape[axis]
    if vector.shape != (length,):
        raise ShapeError(
            f"{op}: {name} has the shape {vector.shape}; "
            f"axis {axis} of the shape {x.shape} takes ({length},)"
        )
    return ops.reshape(vector, (length, *(1,) * (x.ndim - 1 - axis)))


def check_trailing(op: str, name: str, weight: Tensor | None, x: Tensor, axis: int) -> None:
    """Check that a weight has the shape of the normalized axes."""
    if weight is not None and weight.shape != x.shape[axis:]:
        raise ShapeError(
            f"{op}: {name} has the shape {weight.shape}; "
            f"the normalised axes of the shape {x.shape} take {x.shape[axis:]}"
        )
