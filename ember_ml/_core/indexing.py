"""Index keys: checks, and conversion to native keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRangeError,
)
from ember_ml._core.keys import is_plain
from ember_ml._core.tensor import EmberTensor

_BASIC = (int, type(None), slice, type(Ellipsis))


def host_array(value: Any) -> Any:
    """Return indices given as numbers, lists or NumPy arrays as a NumPy array; None for tensors."""
    if isinstance(value, EmberTensor):
        return None
    owner = runtime.backend_of(value)
    if owner is not None and not runtime.LOADED[owner].IS_HOST:
        return None
    array, _ = runtime.host().parse(value, None)
    return array.astype("int64") if array.size == 0 and isinstance(value, (list, tuple)) else array


def host_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, an array or nested lists."""
    return tuple(value.shape) if hasattr(value, "shape") else host_array(value).shape


def check_range(array: Any, length: int, where: str, *, negative: bool = True) -> None:
    """Raise if an index of a host array is out of range.

    Indices in tensors are not checked here, since reading them would wait for the device: NumPy and
    torch (on a CPU) check them themselves, MLX does not.

    Args:
        array: Host array; None is not checked.
        length: Length of the indexed axis.
        where: Description of the axis for the message.
        negative: Whether indices may count from the end.
    """
    if array is None or array.size == 0 or array.dtype.kind not in "iu":
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
        raise ArgumentTypeError(f"a slice takes integers and None, not {part}") from None
    if step == 0:
        raise ArgumentError("the step of a slice must not be zero")
    return slice(start, stop, step)


def _read(part: Any, backend: str) -> Any:
    """Return a part of a key as an int, slice, None, Ellipsis, host array or tensor."""
    kind = type(part)
    if kind is slice:
        return _slice(part)
    if kind in _BASIC:
        return part
    array = part if kind is EmberTensor and part._backend == backend else _array(part, backend)
    if type(array) is int:
        return array
    if not _is_mask(array) and not _is_integer(array):
        raise ArgumentTypeError(
            "an index takes integers, slices, ..., None and tensors of integers or bools, "
            f"not {array.dtype}"
        )
    return array


def _array(part: Any, backend: str) -> Any:
    """Return an int, a host array or a tensor of the backend for other data."""
    from ember_ml._core.convert import as_backend

    array = host_array(part)
    if array is None:
        return as_backend(part, backend)
    return int(array) if array.ndim == 0 and array.dtype.kind in "iu" else array


def _is_mask(part: Any) -> bool:
    return part.dtype is bool_ if isinstance(part, EmberTensor) else part.dtype.kind == "b"


def _is_integer(part: Any) -> bool:
    return part.dtype.is_integer if isinstance(part, EmberTensor) else part.dtype.kind in "iu"


def _axes_taken(part: Any) -> int:
    """Return the number of axes that a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    if type(part) is int or type(part) is slice:
        return 1
    return part.ndim if _is_mask(part) else 1


def _native(part: Any, backend: str, shape: Sequence[int], axis: int) -> Any:
    """Return a part of a key in native form, checked against its axes."""
    if type(part) is int:
        if not -shape[axis] <= part < shape[axis]:
            raise IndexOutOfRangeError(
                f"index {part} is out of range for axis {axis} of the shape {tuple(shape)}"
            )
        return part
    if type(part) in _BASIC:
        return part
    if _is_mask(part):
        part = _fitted(part, tuple(shape[axis : axis + part.ndim]))
    elif not isinstance(part, EmberTensor):
        check_range(part, shape[axis], f"axis {axis} of the shape {tuple(shape)}")
    if isinstance(part, EmberTensor):
        return part._data
    from ember_ml._core.convert import as_backend

    return as_backend(part, backend)._data


def _fitted(mask: Any, shape: tuple[int, ...]) -> Any:
    """Return a mask of the shape; in the array API standard a length of 0 fits any length."""
    given = tuple(mask.shape)
    if given == shape:
        return mask
    if not all(length in (0, wanted) for length, wanted in zip(given, shape, strict=True)):
        raise IndexOutOfRangeError(f"a mask of shape {given} does not fit axes of shape {shape}")
    false, _ = runtime.host().parse(False, None)
    return false.repeat(math.prod(shape)).reshape(shape)


def _fits(key: EmberTensor, shape: Sequence[int]) -> bool:
    """Return whether a tensor is a valid key for the shape by itself."""
    dtype = key.dtype
    if dtype is bool_:
        return key.shape == tuple(shape[: key.ndim])
    return dtype.is_integer and len(shape) > 0


def normalize(key: Any, backend: str, shape: Sequence[int]) -> Any:
    """Return the key in native form, with the range of ints and host arrays checked.

    Args:
        key: Index key as given to `x[key]`.
        backend: Backend of the indexed tensor.
        shape: Its shape.

    Returns:
        A tuple for a tuple, else a single native part.
    """
    if type(key) is EmberTensor and key._backend == backend and _fits(key, shape):
        return key._data
    given = key if type(key) is tuple else (key,)
    if is_plain(given, shape):
        return key
    parts = [_read(part, backend) for part in given]
    taken = [_axes_taken(part) for part in parts]
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexOutOfRangeError("an index takes at most one ellipsis (...)")
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


def native_key(key: Any, backend: str, shape: Sequence[int]) -> Any:
    """Return `normalize(key, ...)`, with a shortcut for a single integer."""
    if type(key) is int and shape and -shape[0] <= key < shape[0]:
        return key
    return normalize(key, backend, shape)
