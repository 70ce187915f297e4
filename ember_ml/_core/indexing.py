"""Indices, made native and checked before a backend sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentTypeError, IndexOutOfRangeError
from ember_ml._core.tensor import EmberTensor


def _native(part: Any, backend: str) -> Any:
    """A tensor, array or list within an index, as a native array of integers or bools."""
    from ember_ml._core.convert import as_backend

    if isinstance(part, list) and not part:
        part = as_backend(part, backend).astype("int64")
    tensor = as_backend(part, backend)
    if tensor.dtype is not bool_ and not tensor.dtype.is_integer:
        raise ArgumentTypeError(
            f"an index is made of integers, slices, ..., None and tensors of integers or bools, not {tensor.dtype}"
        )
    return tensor._data


def _slice(part: slice) -> slice:
    def whole(value: Any) -> Any:
        return value if value is None or type(value) is int else value.__index__()

    if part.step is not None and whole(part.step) == 0:
        raise ValueError("a slice's step must not be zero")
    return slice(whole(part.start), whole(part.stop), whole(part.step))


def _plain(part: Any, backend: str) -> Any:
    kind = type(part)
    if kind is int or part is None or part is Ellipsis:
        return part
    if kind is slice:
        return _slice(part)
    if kind is bool or isinstance(part, (EmberTensor, list)):
        return _native(part, backend)
    if hasattr(part, "__index__") and not getattr(part, "shape", ()):
        return part.__index__()
    return _native(part, backend)


def _axes_taken(part: Any) -> int:
    """How many axes of the tensor a part of an index uses up."""
    if part is None or part is Ellipsis:
        return 0
    if type(part) is int or type(part) is slice:
        return 1
    return part.ndim if runtime.DTYPE_OF[part.dtype] is bool_ else 1


def normalize(key: Any, backend: str, shape: Sequence[int]) -> Any:
    """The index with native parts, `...` in place if any is needed, integers within range.

    A single part stays a single part; several are a tuple.
    """
    parts = (
        [_plain(part, backend) for part in key] if type(key) is tuple else [_plain(key, backend)]
    )
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexOutOfRangeError("an index may hold one ellipsis (...)")
    taken = sum(map(_axes_taken, parts))
    if taken > len(shape):
        raise IndexOutOfRangeError(
            f"{taken} indices for a tensor of {len(shape)} axes, shape {tuple(shape)}"
        )
    axis = 0
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis = len(shape) - sum(map(_axes_taken, parts[position + 1 :]))
            continue
        if type(part) is int and not -shape[axis] <= part < shape[axis]:
            raise IndexOutOfRangeError(
                f"index {part} is out of range for axis {axis} of shape {tuple(shape)}"
            )
        axis += _axes_taken(part)
    return tuple(parts) if type(key) is tuple else parts[0]
