"""Tensors as the tapes store them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml._core.types import NativeArray

Values: TypeAlias = list[Tensor]
_new = object.__new__


def like(data: NativeArray, x: Tensor) -> Tensor:
    """Return a native array as a tensor with the backend and dtype of x."""
    tensor = _new(EmberTensor)
    tensor._data = data
    tensor._backend = x._backend
    tensor._tag = x._tag
    return tensor


def snapshot(x: Tensor) -> Tensor:
    """Return a tensor with the current value of x, which later updates of x do not change."""
    return like(x._data, x)


DIFFERENTIABLE_TAGS: set[str] = set()
"""Cache of the tags of floating-point and complex dtypes."""


def is_differentiable_tag(tag: str) -> bool:
    """Return whether tensors with this tag have gradients; fill `DIFFERENTIABLE_TAGS`."""
    if runtime.DTYPE_OF_TAG[tag].kind in ("float", "complex"):
        DIFFERENTIABLE_TAGS.add(tag)
    return tag in DIFFERENTIABLE_TAGS


def is_differentiable(x: Tensor) -> bool:
    """Return whether tensors of this dtype have gradients."""
    return x._tag in DIFFERENTIABLE_TAGS or is_differentiable_tag(x._tag)


def basis(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the standard basis of a shape along a new first axis, in the dtype of x."""
    count = math.prod(shape)
    eye = convert_to_tensor(ops.eye(count), dtype=x.dtype, backend=x._backend)
    return ops.reshape(eye, (count, *shape))
