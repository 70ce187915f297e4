"""Selection of elements by position or condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, TypeAlias, Union

from ember_ml._core import recording, rules, runtime
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import IndexLike, MaskLike, Op, around, composite, host_checked, op
from ember_ml._core.dtype import PYTHON_TYPES, bool_, promote_scalar
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.indexing import check_range, host_array, host_shape, native_key
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike, TensorsLike, wrap
from ember_ml.ops._arguments import normalize_axis
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


Key: TypeAlias = Union[TensorLike, slice, EllipsisType, "tuple[Key, ...]", None]
"""Index as in `x[key]`."""


def like(value: TensorLike, x: Tensor) -> Tensor:
    """Return a value to be written into x: on its backend and in its dtype."""
    if isinstance(value, EmberTensor) and value._backend == x._backend:
        return value if value.dtype is x.dtype else astype(value, x.dtype)
    return as_backend(value, x._backend, x.dtype)


def _check_axis(name: str, arguments: dict[str, Any]) -> None:
    shape, axis = host_shape(arguments["x"]), arguments["axis"]
    if axis is not None:
        shape = (shape[normalize_axis(name, axis, len(shape))],)
    length = math.prod(shape)
    check_range(
        host_array(arguments["indices"]), length, f"{name} along axis={axis} of length {length}"
    )


def _check_tuples(name: str, arguments: dict[str, Any]) -> None:
    array, shape = host_array(arguments["indices"]), host_shape(arguments["x"])
    if array is not None and array.ndim:
        for axis, length in zip(range(array.shape[-1]), shape, strict=False):
            check_range(array[..., axis], length, f"{name} along axis {axis} of shape {shape}")


def _check_flat(name: str, arguments: dict[str, Any]) -> None:
    length = math.prod(arguments["shape"])
    where = f"{name} into shape {tuple(arguments['shape'])}"
    check_range(host_array(arguments["indices"]), length, where, negative=False)


@op
def getitem(x: TensorLike, key: object) -> Tensor:
    """Return x[key] for a key native to the backend; `index` takes any key.

    Args:
        x: Input tensor.
        key: Native key.
    """


@op
def setitem(x: TensorLike, value: TensorLike, key: object) -> Tensor:
    """Return x with x[key] = value for a native key.

    Args:
        x: Input tensor.
        value: Values to write.
        key: Native key.
    """


@op(rule=rules.NUMERIC)
def additem(x: TensorLike, value: TensorLike, key: object) -> Tensor:
    """Return x with x[key] += value for a native key; repeated positions accumulate.

    Args:
        x: Input tensor.
        value: Values to add.
        key: Native key.
    """


def _key(key: Key, x: Tensor) -> object:
    """Return the native key; masks become indices if a tape will replay the call."""
    native = native_key(key, x._backend, x.shape)
    if not recording.OPEN or runtime.LOADED[x._backend].autodiff.ENGINE != "replay":
        return native
    array = runtime.LOADED[x._backend].ARRAY
    parts: list[object] = []
    for part in native if type(native) is tuple else (native,):
        mask = wrap(part, x._backend) if isinstance(part, array) else None
        if mask is not None and mask.dtype is bool_ and mask.ndim:
            parts += [at._data for at in nonzero(mask)]  # a replay cannot read their number
        else:
            parts.append(part)
    return tuple(parts)


def index(x: Tensor, key: Key) -> Tensor:
    """Return x[key] as an op."""
    return getitem(x, _key(key, x))


@composite
def index_update(x: TensorLike, key: Key, value: TensorLike) -> Tensor:
    """Return a copy of x with x[key] = value, in the dtype of x.

    Args:
        x: Input tensor.
        key: Index as in `x[key]`: integers, slices, None, Ellipsis, masks and index tensors.
        value: Values to write; broadcasts to the selected part.
    """
    return setitem(x, like(value, x), _key(key, x))


@composite(rule=rules.NUMERIC)
def index_add(x: TensorLike, key: Key, value: TensorLike) -> Tensor:
    """Return a copy of x with x[key] += value; repeated positions accumulate.

    Args:
        x: Input tensor.
        key: Index as in `x[key]`: integers, slices, None, Ellipsis, masks and index tensors.
        value: Values to add; broadcasts to the selected part.
    """
    return additem(x, like(value, x), _key(key, x))


@host_checked(_check_axis)
@op
def take(x: TensorLike, indices: IndexLike, axis: int | None = None) -> Tensor:
    """Return the elements at the indices along an axis, which the axes of `indices` replace.

    Args:
        x: Input tensor.
        indices: Integer positions; negative ones count from the end.
        axis: Axis to index. Default: the flattened tensor.
    """


@host_checked(_check_axis)
@composite
def gather(x: TensorLike, indices: IndexLike, axis: int = 0) -> Tensor:
    """Return the slices at the indices along an axis, which the axes of `indices` replace.

    Args:
        x: Input tensor.
        indices: Integer positions; negative ones count from the end.
        axis: Axis to index.
    """
    return take(x, indices, axis)


@host_checked(_check_axis)
@op
def take_along_axis(x: TensorLike, indices: IndexLike, axis: int = -1) -> Tensor:
    """Return out[i, j] = x[i, indices[i, j]] for the last axis, and likewise for any axis.

    Args:
        x: Input tensor.
        indices: Integer positions along `axis`; the other axes broadcast with those of x.
        axis: Axis to index.
    """


def _put(op: Op) -> Callable[..., Tensor]:
    dispatch = op.function

    def call(x: TensorLike, indices: TensorLike, values: TensorLike, axis: int = -1) -> Tensor:
        if not isinstance(x, EmberTensor):
            return dispatch(x, indices, values, axis)
        return dispatch(x, indices, like(values, x), axis)

    return call


@around(_put)
@host_checked(_check_axis)
@op
def put_along_axis(x: TensorLike, indices: IndexLike, values: TensorLike, axis: int = -1) -> Tensor:
    """Return a copy of x with values written where `take_along_axis` reads.

    Args:
        x: Input tensor.
        indices: Integer positions along `axis`; the other axes broadcast with those of x.
        values: Values to write; broadcasts to `indices`. Cast to the dtype of x.
        axis: Axis to index.
    """


@host_checked(_check_tuples)
@composite
def gather_nd(x: TensorLike, indices: IndexLike) -> Tensor:
    """Return out[i] = x[tuple(indices[i])].

    Args:
        x: Input tensor.
        indices: Integers; the last axis holds one index for each of the leading axes of x.
    """
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= x.ndim:
        raise ShapeError(
            f"gather_nd: expected 1 to {x.ndim} indices each for shape {x.shape}; got {depth}"
        )
    return index(x, tuple(index(indices, (..., at)) for at in range(depth)))


def _promoted(value: TensorLike, other: TensorLike) -> TensorLike:
    """Return a scalar as a tensor if the other operand's dtype holds it: the fast common case."""
    if type(value) not in PYTHON_TYPES or type(other) is not EmberTensor:
        return value
    dtype = other.dtype
    if promote_scalar(dtype, type(value)) is not dtype:
        return value
    return as_backend(value, other._backend, dtype)


def _one_argument(op: Op) -> Callable[..., Tensor | tuple[Tensor, ...]]:
    dispatch = op.function

    def call(
        condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        if x is not None and y is not None:
            return dispatch(condition, _promoted(x, y), _promoted(y, x))
        if x is None and y is None:
            return nonzero(condition)
        raise ArgumentTypeError("where: expected a condition alone, or with both x and y")

    return call


@around(_one_argument)
@op
def where(condition: MaskLike, x: TensorLike | None = None, y: TensorLike | None = None) -> Tensor:
    """Return x where the condition is true, else y.

    Args:
        condition: Bools; broadcasts with x and y.
        x: Values where the condition is true. Without x and y: return `nonzero(condition)`.
        y: Values where it is false; broadcasts with x.
    """


@op
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements in row-major order, one tensor per axis.

    Args:
        x: Input tensor.
    """


@op
def argwhere(x: TensorLike) -> Tensor:
    """Return the indices of the nonzero elements as rows of shape (count, ndim).

    Args:
        x: Input tensor.
    """


@composite
def flatnonzero(x: TensorLike) -> Tensor:
    """Return the indices of the nonzero elements of the flattened tensor.

    Args:
        x: Input tensor.
    """
    return nonzero(ravel(x))[0]


def select(
    condlist: Sequence[MaskLike], choicelist: Sequence[TensorLike], default: TensorLike = 0
) -> Tensor:
    """Return from each choice the elements whose condition is the first to be true.

    Args:
        condlist: Bool tensors, in order of priority.
        choicelist: One tensor per condition; all broadcast together.
        default: Value where no condition is true.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select: expected one choice per condition; got {len(condlist)} and {len(choicelist)}"
        )
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = where(condition, choice, out)
    return out


@composite
def masked_fill(
    x: TensorLike, mask: MaskLike, value: bool | int | float | complex | Tensor
) -> Tensor:
    """Return x with `value` where the mask is true, in the dtype of x.

    Args:
        x: Input tensor.
        mask: Bools; broadcasts with x.
        value: Replacement; broadcasts with x.
    """
    return where(mask, like(value, x), x)


@composite
def masked_select(x: TensorLike, mask: MaskLike) -> Tensor:
    """Return the elements of x where the mask is true, as a vector.

    Args:
        x: Input tensor.
        mask: Bools; broadcasts with x.
    """
    shape = broadcast_shapes(x.shape, mask.shape)
    return index(broadcast_to(x, shape), broadcast_to(astype(mask, "bool"), shape))


@composite
def compress(condition: MaskLike, x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the slices of x along an axis where the condition is true.

    Args:
        condition: Vector of bools.
        x: Input tensor.
        axis: Axis to select from. Default: the flattened tensor.
    """
    if condition.ndim != 1:
        raise ShapeError(f"compress: condition has shape {condition.shape}; expected a vector")
    return take(x, nonzero(condition)[0], axis)


@composite
def extract(condition: MaskLike, x: TensorLike) -> Tensor:
    """Return the elements of x where the condition is true, as a vector.

    Args:
        condition: Bools, of the size of x.
        x: Input tensor.
    """
    return take(x, flatnonzero(condition))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the row and column indices on and below the k-th diagonal of a matrix.

    Args:
        n: Number of rows.
        k: Diagonal; positive values are above the main diagonal.
        m: Number of columns. Default: n.
    """
    return nonzero(tri(n, m, k=k, dtype="bool"))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the row and column indices on and above the k-th diagonal of a matrix.

    Args:
        n: Number of rows.
        k: Diagonal; positive values are above the main diagonal.
        m: Number of columns. Default: n.
    """
    return nonzero(logical_not(tri(n, m, k=k - 1, dtype="bool")))


@host_checked(_check_flat)
@op(rule=rules.INTEGER)
def unravel_index(indices: TensorLike, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Return flat indices as indices along each axis of a shape.

    Args:
        indices: Integer positions in the flattened tensor.
        shape: Shape of the tensor.
    """


@op(rule=rules.INTEGER)
def ravel_multi_index(multi_index: TensorsLike, shape: Sequence[int]) -> Tensor:
    """Return indices along each axis of a shape as indices into the flattened tensor.

    Args:
        multi_index: One integer tensor per axis.
        shape: Shape of the tensor.
    """
