"""Checks of shapes and axes for composite ops."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import AxisError, ShapeError
from ember_ml._core.tensor import Tensor

__all__: list[str] = []


def positive_axis(op: str, x: Tensor, axis: int) -> int:
    """The axis, counted from the front."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"{op}: axis={axis} is out of range for the shape {x.shape}")
    return axis % x.ndim


def along(op: str, name: str, vector: Tensor, x: Tensor, axis: int) -> Tensor:
    """A vector shaped to broadcast along an axis of x."""
    length = x.shape[axis]
    if vector.shape != (length,):
        raise ShapeError(
            f"{op}: {name} has the shape {vector.shape}; axis {axis} of the shape {x.shape} takes ({length},)"
        )
    return ops.reshape(vector, (length, *(1,) * (x.ndim - 1 - axis)))


def check_trailing(op: str, name: str, weight: Tensor | None, x: Tensor, axis: int) -> None:
    """A weight has the shape of the axes that are normalised."""
    if weight is not None and weight.shape != x.shape[axis:]:
        raise ShapeError(
            f"{op}: {name} has the shape {weight.shape}; the normalised axes of the shape {x.shape} "
            f"take {x.shape[axis:]}"
        )
