"""Indices, made native and checked before a backend sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError
from ember_ml._core.tensor import EmberTensor

_BASIC = (int, slice, type(None), type(Ellipsis))


def host_array(value: Any) -> Any:
    """Indices given as numbers, lists or NumPy arrays, as a NumPy array; None for tensors of any backend."""
    if isinstance(value, EmberTensor):
        return None
    owner = runtime.ARRAY_TYPES.get(type(value))
    if owner is not None and not runtime.LOADED[owner].IS_HOST:
        return None
    array, _ = runtime.host().parse(value, None)
    return array.astype("int64") if array.size == 0 and isinstance(value, (list, tuple)) else array


def check_range(array: Any, length: int, where: str, *, negative: bool = True) -> None:
    """Raise if an index of a host array is beyond the end of an axis of that length.

    Indices in tensors are not looked at here, for that would wait for the device: NumPy and torch (on a CPU)
    check them on their own, MLX does not.
    """
    if array.size == 0:
        return
    low, high = int(array.min()), int(array.max())
    if high >= length or low < (-length if negative else 0):
        beyond = high if high >= length else low
        raise IndexOutOfRangeError(f"index {beyond} is out of range for {where}")


def _whole(value: Any) -> int | None:
    return value if value is None or type(value) is int else value.__index__()


def _slice(part: slice) -> slice:
    try:
        start, stop, step = _whole(part.start), _whole(part.stop), _whole(part.step)
    except AttributeError:
        raise ArgumentTypeError(f"a slice is made of integers and None, not {part}") from None
    if step == 0:
        raise ArgumentError("a slice's step must not be zero")
    return slice(start, stop, step)


def _read(part: Any, backend: str) -> Any:
    """A part of an index as an int, slice, None, Ellipsis, host array or tensor."""
    kind = type(part)
    if kind is slice:
        return _slice(part)
    if kind in _BASIC:
        return part
    if kind is not bool and hasattr(part, "__index__") and not isinstance(part, EmberTensor):
        if not getattr(part, "shape", ()):
            return part.__index__()
    array = host_array(part)
    if array is None:
        from ember_ml._core.convert import as_backend

        array = as_backend(part, backend)
    if not _is_mask(array) and not _is_integer(array):
        raise ArgumentTypeError(
            "an index is made of integers, slices, ..., None and tensors of integers or bools, "
            f"not {array.dtype}"
        )
    return array


def _is_mask(part: Any) -> bool:
    return part.dtype is bool_ if isinstance(part, EmberTensor) else part.dtype.kind == "b"


def _is_integer(part: Any) -> bool:
    return part.dtype.is_integer if isinstance(part, EmberTensor) else part.dtype.kind in "iu"


def _axes_taken(part: Any) -> int:
    """How many axes of the tensor a part of an index uses up."""
    if part is None or part is Ellipsis:
        return 0
    if type(part) is int or type(part) is slice:
        return 1
    return part.ndim if _is_mask(part) else 1


def _native(part: Any, backend: str, shape: Sequence[int], axis: int) -> Any:
    """A part of an index, checked against the axes it stands for, as the backend takes it."""
    if type(part) is int:
        if not -shape[axis] <= part < shape[axis]:
            raise IndexOutOfRangeError(
                f"index {part} is out of range for axis {axis} of the shape {tuple(shape)}"
            )
        return part
    if type(part) in _BASIC:
        return part
    if _is_mask(part):
        if tuple(part.shape) != tuple(shape[axis : axis + part.ndim]):
            raise IndexOutOfRangeError(
                f"a mask of shape {tuple(part.shape)} does not fit axis {axis} and following "
                f"of the shape {tuple(shape)}"
            )
    elif not isinstance(part, EmberTensor):
        check_range(part, shape[axis], f"axis {axis} of the shape {tuple(shape)}")
    if isinstance(part, EmberTensor):
        return part._data
    from ember_ml._core.convert import as_backend

    return as_backend(part, backend)._data


def normalize(key: Any, backend: str, shape: Sequence[int]) -> Any:
    """The index with native parts, integers and the host's index arrays checked for range.

    A single part stays a single part; several are a tuple.
    """
    parts = [_read(part, backend) for part in (key if type(key) is tuple else (key,))]
    taken = [_axes_taken(part) for part in parts]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexOutOfRangeError("an index may hold one ellipsis (...)")
    if sum(taken) > len(shape):
        raise IndexOutOfRangeError(
            f"{sum(taken)} indices for a tensor of {len(shape)} axes, shape {tuple(shape)}"
        )
    axis = 0
    native = []
    for position, part in enumerate(parts):
        if part is Ellipsis:
            axis = len(shape) - sum(taken[position + 1 :])
        native.append(_native(part, backend, shape, axis))
        axis += taken[position]
    return tuple(native) if type(key) is tuple else native[0]
