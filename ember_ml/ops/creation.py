"""Creation of tensors from shapes, ranges, data and other tensors."""

from __future__ import annotations

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
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike, TensorsLike, wrap
from ember_ml._core.types import ShapeLike

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


def _spaced_dtype(start: object, stop: object, *args: object, **kwargs: object) -> EmberDType:
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    return DEFAULT_COMPLEX if is_complex else DEFAULT_FLOAT


def _range_dtype(start: object, stop: object = None, step: object = 1) -> EmberDType:
    numbers = [value for value in (start, stop, step) if value is not None]
    return DEFAULT_INT if all(hasattr(value, "__index__") for value in numbers) else DEFAULT_FLOAT


@creation
def zeros(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return a tensor of zeros.

    Args:
        shape: Length of the only axis, or of each axis.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def ones(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: Length of the only axis, or of each axis.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def empty(shape: ShapeLike, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return a tensor with uninitialized values.

    Args:
        shape: Length of the only axis, or of each axis.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@op
def filled(x: TensorLike, shape: ShapeLike) -> Tensor:
    """Return a new tensor of the given shape with every element equal to x.

    Args:
        x: 0-d tensor with the value.
        shape: Length of the only axis, or of each axis.
    """


def full(
    shape: ShapeLike,
    fill_value: TensorLike,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a tensor with every element equal to `fill_value`.

    Args:
        shape: Length of the only axis, or of each axis.
        fill_value: Value of the elements.
        dtype: Data type of the result. Default: that of the value.
        device: Device of the result. Default: the device of new tensors.
    """
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
    """Return a matrix with ones on the k-th diagonal and zeros elsewhere.

    Args:
        n_rows: Number of rows.
        n_cols: Number of columns. Default: `n_rows`.
        k: Diagonal; positive values are above the main diagonal.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


def identity(n: int, *, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """Return the n by n identity matrix.

    Args:
        n: Number of rows and columns.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """
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
    """Return a matrix with ones on and below the k-th diagonal and zeros above.

    Args:
        n_rows: Number of rows.
        n_cols: Number of columns. Default: `n_rows`.
        k: Diagonal; positive values are above the main diagonal.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation(dtype=_range_dtype)
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the numbers start, start + step, ... before stop.

    Args:
        start: First number; the end of a range from 0 if `stop` is missing.
        stop: End of the range, excluded.
        step: Difference between neighbors; may be negative.
        dtype: Data type of the result. Default: int64 if all numbers are integers, else float32.
        device: Device of the result. Default: the device of new tensors.
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
    """Return `num` evenly spaced numbers from start to stop.

    Args:
        start: First number.
        stop: Last number, or the end if `endpoint` is False.
        num: Number of values.
        dtype: Data type of the result. Default: float32, or complex64 for complex bounds.
        device: Device of the result. Default: the device of new tensors.
        endpoint: Whether `stop` is the last value.
    """


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
    """Return the powers base ** linspace(start, stop, num).

    Args:
        start: First exponent.
        stop: Last exponent, or the end if `endpoint` is False.
        num: Number of values.
        base: Base of the powers.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        endpoint: Whether `stop` is the last value.
    """


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
    """Return `num` numbers with constant ratio from start to stop.

    Args:
        start: First number.
        stop: Last number, of the same sign, or the end if `endpoint` is False.
        num: Number of values.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        endpoint: Whether `stop` is the last value.
    """


@op
def zeros_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return zeros with the shape of x.

    Args:
        x: Tensor that defines shape, dtype and device.
        dtype: Data type of the result. Default: that of x.
        device: Device of the result. Default: that of x.
    """


@op
def ones_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return ones with the shape of x.

    Args:
        x: Tensor that defines shape, dtype and device.
        dtype: Data type of the result. Default: that of x.
        device: Device of the result. Default: that of x.
    """


@op
def empty_like(
    x: TensorLike, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return uninitialized values with the shape of x.

    Args:
        x: Tensor that defines shape, dtype and device.
        dtype: Data type of the result. Default: that of x.
        device: Device of the result. Default: that of x.
    """


@composite
def full_like(
    x: TensorLike,
    fill_value: complex | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a tensor with the shape of x and every element equal to `fill_value`.

    Args:
        x: Tensor that defines shape, dtype and device.
        fill_value: Value of the elements.
        dtype: Data type of the result. Default: that of x.
        device: Device of the result. Default: that of x.
    """
    value = convert_to_tensor(fill_value, dtype or x.dtype, device or x.device, backend=x.backend)
    return filled(value, x.shape)


@op
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """Return the lower triangle of x: zeros above the k-th diagonal of the last two axes.

    Args:
        x: Matrices, (..., rows, columns).
        k: Diagonal; positive values are above the main diagonal.
    """


@op
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """Return the upper triangle of x: zeros below the k-th diagonal of the last two axes.

    Args:
        x: Matrices, (..., rows, columns).
        k: Diagonal; positive values are above the main diagonal.
    """


@op
def coordinate_matrices(tensors: TensorsLike, indexing: str = "xy") -> list[Tensor]:
    """Return the grids of `meshgrid` for vectors of one dtype.

    Args:
        tensors: Vectors with the coordinates along each axis.
        indexing: "ij" keeps the order of the axes, "xy" swaps the first two.
    """


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid: one tensor per vector, with one axis per vector.

    Args:
        arrays: Vectors with the coordinates along each axis.
        indexing: "ij" keeps the order of the axes, "xy" swaps the first two.
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}")
    return coordinate_matrices(arrays, indexing) if arrays else []


@composite(rule=rules.NUMERIC)
def vander(x: TensorLike, n: int | None = None, *, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix, whose columns are the powers of a vector.

    Args:
        x: Vector.
        n: Number of columns. Default: the length of x.
        increasing: Whether the powers ascend from 0; else they descend to 0.
    """
    if x.ndim != 1:
        raise ShapeError(f"vander: x has shape {x.shape}; expected a vector")
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
    """Return the data as a tensor; a tensor that needs no change is returned as is.

    Args:
        obj: Tensor, array of any framework, nested sequence or scalar.
        dtype: Data type of the result. Default: that of the data.
        device: Device of the result. Default: the data's, or the device of new tensors.
        copy: True always copies, False raises if a copy is needed, None copies as needed.
    """
    if copy is False and isinstance(obj, (list, tuple, range)):
        raise ArgumentError(
            f"asarray: copy=False needs an array; a {type(obj).__name__} has no memory to share"
        )
    return convert_to_tensor(obj, dtype, device, copy=copy)


def array(obj: TensorLike, dtype: DTypeLike | None = None, *, device: str | None = None) -> Tensor:
    """Return a new tensor with a copy of the data.

    Args:
        obj: Tensor, array of any framework, nested sequence or scalar.
        dtype: Data type of the result. Default: that of the data.
        device: Device of the result. Default: the data's, or the device of new tensors.
    """
    return convert_to_tensor(obj, dtype, device, copy=True)


def from_dlpack(x: object, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of another library's array through DLPack, sharing memory if possible.

    Args:
        x: Object with a `__dlpack__` method.
        device: Device of the result. Default: the data's, or the device of new tensors.
        copy: True always copies, False raises if a copy is needed, None copies as needed.
    """
    if not hasattr(x, "__dlpack__"):
        raise ArgumentTypeError(
            f"from_dlpack: x must have a __dlpack__ method; got a {type(x).__name__}"
        )
    backend = runtime.active()
    try:
        if isinstance(x, EmberTensor):
            return convert_to_tensor(x, device=device, backend=backend, copy=copy)
        shared = wrap(runtime.load(backend).from_dlpack(x, copy), backend)
        return convert_to_tensor(shared, device=device, copy=None if copy else copy)
    except ValueError as error:
        raise BufferError(f"from_dlpack: {error}") from error
