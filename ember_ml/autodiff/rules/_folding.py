"""What the rules of reductions share."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.backend.axes import folded_shape


def kept(x: Any, like: Any, axis: Any, keepdims: bool) -> Any:
    """A folded tensor in a shape that broadcasts to that of `like`."""
    if keepdims or axis is None:
        return x
    return ops.reshape(x, folded_shape(like.shape, axis, True))


def spread(x: Any, like: Any, axis: Any, keepdims: bool) -> Any:
    """A folded tensor in the place of every element that was folded."""
    return ops.broadcast_to(kept(x, like, axis, keepdims), like.shape)
