"""Tensors out of plain arguments, of data, and of other tensors' shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import rules, runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import composite, creation, op
from ember_ml._core.dtype import (
    DEFAULT_COMPLEX,
    DEFAULT_FLOAT,
    DEFAULT_INT,
    EmberDType,
)
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike, wrap

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "vander",
    "zeros",
    "zeros_like",
]

Shape: TypeAlias = "int | Sequence[int]"
"""The length of the only axis, or of each."""


def _spaced_dtype(start: Any, stop: Any, *args: Any, **kwargs: Any) -> EmberDType:
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    return DEFAULT_COMPLEX if is_complex else DEFAULT_FLOAT


def _range_dtype(start: Any, stop: Any = None, step: Any = 1) -> EmberDType:
    given = [value for value in (start, stop, step) if value is not None]
    whole = all(isinstance(value, int) or hasattr(value, "__index__") for value in given)
    return DEFAULT_INT if whole else DEFAULT_FLOAT


@creation
def zeros(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor of zeros."""


@creation
def ones(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor of ones."""


@creation
def empty(shape: Shape, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """A tensor whose values are whatever the memory held."""


@op
def filled(x: TensorLike, shape: Shape) -> Tensor:
    """A tensor of that shape, with memory of its own, that holds x wherever one looks."""


def full(
    shape: Shape,
    fill_value: TensorLike,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """A tensor of one value; the value's dtype unless one is given."""
    return filled(convert_to_tensor(fill_value, dtype, device), shape)


@creation
def eye(
    n_rows: int,
    n_cols: int | None = None,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """A matrix with ones on the k-th diagonal above the main one, and zeros elsewhere."""


def identity(n: int, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """The identity matrix."""
    return eye(n, dtype=dtype, device=device)


@creation
def tri(
    n_rows: int,
    n_cols: int | None = None,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """A matrix with ones on and below the k-th diagonal, and zeros above."""


@creation(dtype=_range_dtype)
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """start, start + step, ... before stop; from 0 if only one number is given.

    int64 if all numbers are integers, float32 otherwise.
    """


@creation(dtype=_spaced_dtype)
def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from start to stop, which is the last if `endpoint`."""


@creation
def logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """The powers base ** linspace(start, stop, num)."""


@creation
def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal ratios from start to stop, both of one sign."""


@op
def zeros_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Zeros in the shape, dtype and place of x."""


@op
def ones_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Ones in the shape, dtype and place of x."""


@op
def empty_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Unset values in the shape, dtype and place of x."""


@composite
def full_like(
    x: TensorLike,
    fill_value: complex | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """One value in the shape, dtype and place of x."""
    value = convert_to_tensor(fill_value, dtype or x.dtype, device or x.device, backend=x.backend)
    return filled(value, x.shape)


@op
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """The last two axes with zeros above the k-th diagonal."""


@op
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """The last two axes with zeros below the k-th diagonal."""


@op
def coordinate_matrices(tensors: Sequence[TensorLike], indexing: str = "xy") -> list[Tensor]:
    """What `meshgrid` gives, of vectors of one dtype."""


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid: one tensor per vector, with as many axes as there are vectors.

    Args:
        arrays: the coordinates along each axis.
        indexing: "ij" keeps the order of the axes, "xy" swaps the first two.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    return coordinate_matrices(arrays, indexing) if arrays else []


@composite(rule=rules.NUMERIC)
def vander(x: TensorLike, n: int | None = None, *, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, n - 1 to 0 (0 to n - 1 if `increasing`)."""
    if x.ndim != 1:
        raise ShapeError(f"vander takes a vector; the shape is {x.shape}")
    length = x.shape[0]
    columns = length if n is None else n
    factors = ops.broadcast_to(ops.expand_dims(x, 1), (length, max(columns - 1, 0)))
    powers = ops.cumprod(ops.concat([ones_like(x)[:, None], factors], axis=1), axis=1)[:, :columns]
    return powers if increasing else ops.flip(powers, axis=1)


def asarray(
    obj: TensorLike,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor of the data; the same tensor if it is one already and nothing is asked of it.

    Args:
        obj: a tensor, any framework's array, nested sequences, or a scalar.
        dtype: the dtype to have.
        device: the device to be on.
        copy: True always copies, False never does (and raises if it would have to), None as needed.
    """
    if copy is False and isinstance(obj, (list, tuple, range)):
        raise ArgumentError(
            f"asarray: copy=False, but a {type(obj).__name__} has no memory to share"
        )
    return convert_to_tensor(obj, dtype, device, copy=copy)


def array(obj: TensorLike, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """A new tensor of the data, with memory of its own."""
    return convert_to_tensor(obj, dtype, device, copy=True)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of another library's array through DLPack, sharing its memory where possible."""
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(f"from_dlpack: a {type(x).__name__} has no __dlpack__")
    backend = runtime.active()
    try:
        if isinstance(x, EmberTensor):
            return convert_to_tensor(x, device=device, backend=backend, copy=copy)
        made = runtime.load(backend).from_dlpack(x, copy)
        return convert_to_tensor(wrap(made, backend), device=device, copy=None if copy else copy)
    except ValueError as error:
        raise BufferError(f"from_dlpack: {error}") from error
