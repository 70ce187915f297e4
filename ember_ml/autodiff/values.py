"""Tensors as a tape keeps them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor

Values: TypeAlias = list[EmberTensor]
_new = object.__new__


def like(data: Any, x: EmberTensor) -> EmberTensor:
    """A native array as a tensor of the backend and dtype of x."""
    tensor = _new(EmberTensor)
    tensor._data = data
    tensor._backend = x._backend
    tensor._tag = x._tag
    return tensor


def snapshot(x: EmberTensor) -> EmberTensor:
    """A tensor of the same native array, which keeps it when x is given another value."""
    return like(x._data, x)


FLOWING: set[str] = set()
"""The tags met so far of the dtypes to which gradients flow."""


def flows(tag: str) -> bool:
    """Whether gradients flow to tensors of this tag, which is entered in `FLOWING` if so."""
    if runtime.DTYPE_OF_TAG[tag].kind in ("float", "complex"):
        FLOWING.add(tag)
    return tag in FLOWING


def is_differentiable(x: EmberTensor) -> bool:
    """Whether gradients flow to tensors of this dtype."""
    return x._tag in FLOWING or flows(x._tag)


def basis(x: EmberTensor, shape: Sequence[int]) -> EmberTensor:
    """A batch of tensors of that shape, each with a single 1, on the backend of x in its dtype."""
    count = math.prod(shape)
    eye = convert_to_tensor(ops.eye(count), dtype=x.dtype, backend=x._backend)
    return ops.reshape(eye, (count, *shape))
