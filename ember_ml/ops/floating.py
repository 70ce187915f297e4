"""Signs, exponents and neighbours of floating-point numbers, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, binary, op, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["copysign", "frexp", "ldexp", "nan_to_num", "nextafter", "signbit"]


@binary(rule=rules.REAL_FLOAT)
def copysign(x: TensorLike, y: TensorLike) -> Tensor:
    """|x| with the sign of y, be y zero or NaN."""


@binary(rule=rules.REAL_FLOAT)
def nextafter(x: TensorLike, y: TensorLike) -> Tensor:
    """The number next to x, among those of its dtype, in the direction of y."""


@unary(rule=rules.REAL_FLOAT)
def signbit(x: TensorLike) -> Tensor:
    """Whether the sign is negative, also that of -0.0 and of NaN."""


@op(rule=rules.REAL_FLOAT)
def ldexp(x: TensorLike, exponent: IndexLike) -> Tensor:
    """x * 2**exponent, for integer exponents."""


@op(rule=rules.REAL_FLOAT)
def frexp(x: TensorLike) -> tuple[Tensor, Tensor]:
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1; the exponents are int32."""


@op(rule=rules.ANY)
def nan_to_num(
    x: TensorLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """x with `nan` for NaN and the given, or the dtype's extreme, numbers for infinities."""
