"""Elements chosen by position or by condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml._core import recording, rules, runtime
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import IndexLike, MaskLike, Op, around, composite, host_checked, op
from ember_ml._core.dtype import PYTHON_TYPES, bool_, promote_scalar
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.indexing import check_range, host_array, host_shape, native_key, normalize_axis
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike, wrap
from ember_ml.ops.comparison import logical_not
from ember_ml.ops.creation import tri
from ember_ml.ops.dtypes import astype
from ember_ml.ops.manipulation import broadcast_shapes, broadcast_to, ravel

__all__ = [
    "argwhere",
    "compress",
    "extract",
    "flatnonzero",
    "gather",
    "gather_nd",
    "index_add",
    "index_update",
    "masked_fill",
    "masked_select",
    "nonzero",
    "put_along_axis",
    "ravel_multi_index",
    "select",
    "take",
    "take_along_axis",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "where",
]


def like(value: TensorLike, x: Tensor) -> Tensor:
    """A value to be put into x: on its backend, in its dtype."""
    if isinstance(value, EmberTensor) and value._backend == x._backend:
        return value if value.dtype is x.dtype else astype(value, x.dtype)
    return as_backend(value, x._backend, x.dtype)


def _check_axis(name: str, given: dict[str, Any]) -> None:
    shape, axis = host_shape(given["x"]), given["axis"]
    if axis is not None:
        shape = (shape[normalize_axis(name, axis, len(shape))],)
    length = math.prod(shape)
    check_range(
        host_array(given["indices"]), length, f"{name} along axis={axis} of length {length}"
    )


def _check_tuples(name: str, given: dict[str, Any]) -> None:
    array, shape = host_array(given["indices"]), host_shape(given["x"])
    if array is not None and array.ndim:
        for axis, length in zip(range(array.shape[-1]), shape, strict=False):
            check_range(array[..., axis], length, f"{name} along axis {axis} of the shape {shape}")


def _check_flat(name: str, given: dict[str, Any]) -> None:
    length = math.prod(given["shape"])
    where = f"{name} into the shape {tuple(given['shape'])}"
    check_range(host_array(given["indices"]), length, where, negative=False)


@op
def getitem(x: TensorLike, key: Any) -> Tensor:
    """x[key] of a key that is native to the backend; `index` takes any key."""


@op
def setitem(x: TensorLike, value: TensorLike, key: Any) -> Tensor:
    """x with x[key] = value, of a native key."""


@op(rule=rules.NUMERIC)
def additem(x: TensorLike, value: TensorLike, key: Any) -> Tensor:
    """x with x[key] += value, of a native key, a place that is named twice added to twice."""


def _key(key: Any, x: Tensor) -> Any:
    """The index as the backend takes it; without masks, if a tape will have the call run again."""
    native = native_key(key, x._backend, x.shape)
    if not recording.OPEN or runtime.LOADED[x._backend].autodiff.ENGINE != "replay":
        return native
    parts: list[Any] = []
    for part in native if type(native) is tuple else (native,):
        mask = wrap(part, x._backend) if type(part) in runtime.ARRAY_TYPES else None
        if mask is not None and mask.dtype is bool_ and mask.ndim:
            parts += [found._data for found in nonzero(mask)]  # how many cannot be read then
        else:
            parts.append(part)
    return tuple(parts)


def index(x: Tensor, key: Any) -> Tensor:
    """x[key], as an op."""
    return getitem(x, _key(key, x))


@composite
def index_update(x: TensorLike, key: Any, value: TensorLike) -> Tensor:
    """A copy of x with x[key] = value; the dtype stays that of x."""
    return setitem(x, like(value, x), _key(key, x))


@composite(rule=rules.NUMERIC)
def index_add(x: TensorLike, key: Any, value: TensorLike) -> Tensor:
    """A copy of x with x[key] += value; a place that the key names twice is added to twice."""
    return additem(x, like(value, x), _key(key, x))


@host_checked(_check_axis)
@op
def take(x: TensorLike, indices: IndexLike, axis: int | None = None) -> Tensor:
    """The elements at the indices along an axis; without one, of the flattened x.

    The axis gives way to those of `indices`. Negative indices count from the end.
    """


@host_checked(_check_axis)
@composite
def gather(x: TensorLike, indices: IndexLike, axis: int = 0) -> Tensor:
    """The slices of x at the indices along an axis, which gives way to the axes of `indices`."""
    return take(x, indices, axis)


@host_checked(_check_axis)
@op
def take_along_axis(x: TensorLike, indices: IndexLike, axis: int = -1) -> Tensor:
    """out[i, j] = x[i, indices[i, j]], and so along any axis; the other axes broadcast."""


def _put(op: Op) -> Callable[..., Any]:
    dispatch = op.function

    def call(x: Any, indices: Any, values: Any, axis: int = -1) -> Any:
        if not isinstance(x, EmberTensor):
            return dispatch(x, indices, values, axis)
        return dispatch(x, indices, like(values, x), axis)

    return call


@around(_put)
@host_checked(_check_axis)
@op
def put_along_axis(x: TensorLike, indices: IndexLike, values: TensorLike, axis: int = -1) -> Tensor:
    """A copy of x with the values where `take_along_axis` reads; the dtype stays that of x."""


@host_checked(_check_tuples)
@composite
def gather_nd(x: TensorLike, indices: IndexLike) -> Tensor:
    """out[i] = x[tuple(indices[i])]: the last axis of `indices` holds an index along each axis."""
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= x.ndim:
        raise ShapeError(f"gather_nd: tuples of {depth} indices for a tensor of shape {x.shape}")
    return index(x, tuple(index(indices, (..., at)) for at in range(depth)))


def _beside(value: Any, other: Any) -> Any:
    """A number beside a tensor whose dtype holds it, as a tensor: the usual case, made quick."""
    if type(value) not in PYTHON_TYPES or type(other) is not EmberTensor:
        return value
    dtype = other.dtype
    if promote_scalar(dtype, type(value)) is not dtype:
        return value
    return as_backend(value, other._backend, dtype)


def _one_argument(op: Op) -> Callable[..., Any]:
    dispatch = op.function

    def call(condition: Any, x: Any = None, y: Any = None) -> Any:
        if x is not None and y is not None:
            return dispatch(condition, _beside(x, y), _beside(y, x))
        if x is None and y is None:
            return nonzero(condition)
        raise ArgumentTypeError("where takes a condition alone, or with both x and y")

    return call


@around(_one_argument)
@op
def where(condition: MaskLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Tensor:
    """x where the condition holds, else y; with neither, the same as `nonzero(condition)`."""


@op
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, in order, one tensor for each axis."""


@op
def argwhere(x: TensorLike) -> Tensor:
    """The indices of the elements that are not zero, one row for each: shape (count, ndim)."""


@composite
def flatnonzero(x: TensorLike) -> Tensor:
    """The indices into the flattened x of the elements that are not zero."""
    return nonzero(ravel(x))[0]


def select(
    condlist: Sequence[MaskLike], choicelist: Sequence[TensorLike], default: TensorLike = 0
) -> Tensor:
    """From each choice the elements whose condition is the first to hold, else the default."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select: {len(condlist)} conditions and {len(choicelist)} choices; as many are needed"
        )
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = where(condition, choice, out)
    return out


@composite
def masked_fill(
    x: TensorLike, mask: MaskLike, value: bool | int | float | complex | Tensor
) -> Tensor:
    """x with `value` where the mask holds; the dtype stays that of x."""
    return where(mask, like(value, x), x)


@composite
def masked_select(x: TensorLike, mask: MaskLike) -> Tensor:
    """The elements of x where the mask holds, along one axis; x and the mask broadcast."""
    shape = broadcast_shapes(x.shape, mask.shape)
    return index(broadcast_to(x, shape), broadcast_to(astype(mask, "bool"), shape))


@composite
def compress(condition: MaskLike, x: TensorLike, axis: int | None = None) -> Tensor:
    """The slices of x along an axis (without one, of the flattened x) whose condition holds."""
    if condition.ndim != 1:
        raise ShapeError(f"compress: the condition has shape {condition.shape}; one axis is needed")
    return take(x, nonzero(condition)[0], axis)


@composite
def extract(condition: MaskLike, x: TensorLike) -> Tensor:
    """The elements of x where the condition, of the same size, holds, along one axis."""
    return take(x, flatnonzero(condition))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements on and below the k-th diagonal of an n by m matrix."""
    return nonzero(tri(n, m, k=k, dtype="bool"))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements on and above the k-th diagonal of an n by m matrix."""
    return nonzero(logical_not(tri(n, m, k=k - 1, dtype="bool")))


@host_checked(_check_flat, position=0)
@op(rule=rules.INTEGER)
def unravel_index(indices: TensorLike, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Indices into a flattened tensor of that shape as indices along each of its axes."""


@op(rule=rules.INTEGER)
def ravel_multi_index(multi_index: Sequence[TensorLike], shape: Sequence[int]) -> Tensor:
    """Indices along each axis of that shape as indices into the flattened tensor."""
