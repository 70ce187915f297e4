"""Elementwise signs, exponents and neighbors of floating-point numbers."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, binary, op, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["copysign", "frexp", "ldexp", "nan_to_num", "nextafter", "signbit"]


@binary(rule=rules.REAL_FLOAT)
def copysign(x: TensorLike, y: TensorLike) -> Tensor:
    """Return |x| with the sign of y, including the sign of zero and NaN.

    Args:
        x: Magnitudes.
        y: Signs; broadcasts with x.
    """


@binary(rule=rules.REAL_FLOAT)
def nextafter(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the next representable number after x in the direction of y.

    Args:
        x: Input tensor.
        y: Direction; broadcasts with x.
    """


@unary(rule=rules.REAL_FLOAT)
def signbit(x: TensorLike) -> Tensor:
    """Return whether the sign bit is set, also for -0.0 and NaN.

    Args:
        x: Input tensor.
    """


@op(rule=rules.REAL_FLOAT)
def ldexp(x: TensorLike, exponent: IndexLike) -> Tensor:
    """Return x * 2**exponent.

    Args:
        x: Mantissas.
        exponent: Integer exponents; broadcasts with x.
    """


@op(rule=rules.REAL_FLOAT)
def frexp(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the pair (m, e) with x = m * 2**e and 0.5 <= |m| < 1; e is int32.

    Args:
        x: Input tensor.
    """


@op(rule=rules.ANY)
def nan_to_num(
    x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return x with NaN and infinities replaced.

    Args:
        x: Input tensor.
        nan: Replacement for NaN.
        posinf: Replacement for +infinity. Default: the largest number of the dtype.
        neginf: Replacement for -infinity. Default: the smallest number of the dtype.
    """
