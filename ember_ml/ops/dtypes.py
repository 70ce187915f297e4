"""Casts, promotion and limits of dtypes."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dispatch import op
from ember_ml._core.dtype import (
    DEFAULT_FLOAT,
    INTEGER_RANGES,
    PYTHON_TYPES,
    EmberDType,
    bfloat16,
    float16,
    float32,
    float64,
    promote,
    promote_scalar,
    real_part,
)
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, DTypeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike

__all__ = [
    "FloatLimits",
    "IntegerLimits",
    "astype",
    "can_cast",
    "cast",
    "finfo",
    "iinfo",
    "isdtype",
    "result_type",
]

KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}
"""Names of the kinds of dtypes in the array API standard."""


class FloatLimits(NamedTuple):
    """Limits of a floating dtype; for a complex dtype, those of its components."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: EmberDType


class IntegerLimits(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: EmberDType


def _float_limits(dtype: EmberDType, fraction: int, exponent: int) -> FloatLimits:
    """Return the limits of a binary format from its fraction bits and maximum exponent."""
    greatest = (2.0 - 2.0**-fraction) * 2.0**exponent
    return FloatLimits(
        dtype.bits, 2.0**-fraction, greatest, -greatest, 2.0 ** (1 - exponent), dtype
    )


FLOAT_LIMITS = {
    limits.dtype: limits
    for limits in (
        _float_limits(float16, 10, 15),
        _float_limits(bfloat16, 7, 127),
        _float_limits(float32, 23, 127),
        _float_limits(float64, 52, 1023),
    )
}


@op
def astype(
    x: TensorLike, dtype: DTypeLike, *, copy: bool = True, device: str | None = None
) -> Tensor:
    """Return the tensor in another dtype. Use `real`, `imag` or `abs` to make complex values real.

    Args:
        x: Input tensor.
        dtype: Data type of the result.
        copy: Whether to copy if x already has the dtype.
        device: Device of the result. Default: that of x.
    """


def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Return x in another dtype, without a copy if it already has it.

    Args:
        x: Tensor, or anything that converts to one.
        dtype: Data type of the result.
    """
    if isinstance(x, EmberTensor):
        return astype(x, dtype, copy=False)
    return convert_to_tensor(x, dtype)


def floating(x: Tensor) -> Tensor:
    """Return the tensor, in float32 if it holds integers or bools."""
    return x if x.dtype.kind in ("float", "complex") else astype(x, DEFAULT_FLOAT)


def _dtype_of(value: object) -> EmberDType:
    """Return the dtype of a tensor or array, or the dtype that a value names."""
    if isinstance(value, (EmberDType, str, type)):
        return as_dtype(value)
    return as_dtype(getattr(value, "dtype", value))


def can_cast(from_: DTypeLike | TensorLike, to: DTypeLike) -> bool:
    """Return whether promotion leads from one dtype to another.

    Args:
        from_: Data type, or a tensor with it.
        to: Target data type.
    """
    target = as_dtype(to)
    try:
        return promote(_dtype_of(from_), target) is target
    except DTypeError:
        return False


def finfo(type: DTypeLike | TensorLike, /) -> FloatLimits:
    """Return the limits of a floating or complex dtype.

    Args:
        type: Data type, or a tensor with it.
    """
    dtype = real_part(_dtype_of(type))
    if dtype not in FLOAT_LIMITS:
        raise ArgumentTypeError(
            f"finfo: expected a floating dtype; got {dtype}. Use iinfo for integers"
        )
    return FLOAT_LIMITS[dtype]


def iinfo(type: DTypeLike | TensorLike, /) -> IntegerLimits:
    """Return the limits of an integer dtype.

    Args:
        type: Data type, or a tensor with it.
    """
    dtype = _dtype_of(type)
    if dtype not in INTEGER_RANGES:
        raise ArgumentTypeError(
            f"iinfo: expected an integer dtype; got {dtype}. Use finfo for floats"
        )
    low, high = INTEGER_RANGES[dtype]
    return IntegerLimits(dtype.bits, high, low, dtype)


def _is_of(dtype: EmberDType, kind: DTypeLike) -> bool:
    if isinstance(kind, str) and kind in KINDS:
        return dtype.kind in KINDS[kind]
    try:
        return dtype is as_dtype(kind)
    except ArgumentTypeError:
        names = ", ".join(KINDS)
        raise ArgumentError(
            f"isdtype: kind must be a dtype or one of {names}; got {kind!r}"
        ) from None


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return whether a dtype belongs to a kind.

    Args:
        dtype: Data type to test.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
            floating", "numeric", a dtype, or a tuple of these, one of which must match.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(_is_of(as_dtype(dtype), one) for one in kinds)


def result_type(*arrays_and_dtypes: TensorLike | DTypeLike) -> EmberDType:
    """Return the dtype that the operands promote to.

    Args:
        arrays_and_dtypes: Tensors, dtypes, and Python scalars, which are weak.
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: expected at least one tensor, dtype or scalar; got none")
    weak = [type(value) for value in arrays_and_dtypes if type(value) in PYTHON_TYPES]
    strong = [_dtype_of(value) for value in arrays_and_dtypes if type(value) not in PYTHON_TYPES]
    dtype = strong[0] if strong else PYTHON_TYPES[weak[0]]
    for other in strong[1:]:
        dtype = promote(dtype, other)
    for scalar in weak:
        dtype = promote_scalar(dtype, scalar)
    return dtype
