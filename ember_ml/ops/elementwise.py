"""Elementwise arithmetic."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, op, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "abs",
    "absolute",
    "add",
    "divide",
    "divmod",
    "float_power",
    "floor_divide",
    "fma",
    "fmod",
    "gcd",
    "heaviside",
    "lcm",
    "lerp",
    "mod",
    "multiply",
    "multiply_add",
    "negative",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "sign",
    "square",
    "subtract",
    "true_divide",
]


@binary(rule=rules.ANY)
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x + y; for bools, the logical or.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x - y.

    Args:
        x: Input tensor.
        y: Tensor to subtract; broadcasts with x.
    """


@binary(rule=rules.ANY)
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x * y; for bools, the logical and.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.FLOAT)
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x / y.

    Args:
        x: Dividend.
        y: Divisor; broadcasts with x.
    """


@binary(rule=rules.REAL)
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x / y rounded down; integer division by zero returns 0.

    Args:
        x: Dividend.
        y: Divisor; broadcasts with x.
    """


@binary(rule=rules.REAL)
def remainder(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x - floor(x / y) * y, with the sign of y; an integer modulo zero is 0.

    Args:
        x: Dividend.
        y: Divisor; broadcasts with x.
    """


@binary(rule=rules.REAL)
def fmod(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x - trunc(x / y) * y, with the sign of x; an integer modulo zero is 0.

    Args:
        x: Dividend.
        y: Divisor; broadcasts with x.
    """


@op(rule=rules.REAL)
def divmod(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the pair (floor_divide(x, y), remainder(x, y)).

    Args:
        x: Dividend.
        y: Divisor; broadcasts with x.
    """


@binary
def pow(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x to the power of y.

    Integers stay integers: a negative power is rounded toward zero.

    Args:
        x: Base.
        y: Exponent; broadcasts with x.
    """


@binary(rule=rules.FLOAT)
def float_power(x: TensorLike, y: TensorLike) -> Tensor:
    """Return x to the power of y, computed in floating point.

    Args:
        x: Base.
        y: Exponent; broadcasts with x.
    """


@unary(rule=rules.NUMERIC)
def negative(x: TensorLike) -> Tensor:
    """Return -x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def positive(x: TensorLike) -> Tensor:
    """Return +x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def abs(x: TensorLike) -> Tensor:
    """Return the absolute value |x|, which is real for complex x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def sign(x: TensorLike) -> Tensor:
    """Return the sign of x: -1, 0 or 1; x / |x| for complex numbers; NaN for NaN.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def square(x: TensorLike) -> Tensor:
    """Return x * x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def reciprocal(x: TensorLike) -> Tensor:
    """Return 1 / x.

    Args:
        x: Input tensor.
    """


@op(rule=rules.NUMERIC)
def multiply_add(x: TensorLike, y: TensorLike, z: TensorLike) -> Tensor:
    """Return x * y + z.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
        z: Tensor to add; broadcasts with x * y.
    """


@op(rule=rules.FLOAT)
def lerp(x: TensorLike, y: TensorLike, weight: TensorLike) -> Tensor:
    """Return the linear interpolation x + weight * (y - x).

    Args:
        x: Value at weight 0.
        y: Value at weight 1; broadcasts with x.
        weight: Interpolation weight; broadcasts with x. Values outside [0, 1] extrapolate.
    """


@binary(rule=rules.REAL_FLOAT)
def heaviside(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the Heaviside step function: 0 where x < 0, 1 where x > 0, y where x is 0.

    Args:
        x: Input tensor.
        y: Value at x = 0; broadcasts with x.
    """


@binary(rule=rules.INTEGER)
def gcd(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the greatest common divisor, which is never negative.

    Args:
        x: First integer tensor.
        y: Second integer tensor; broadcasts with x.
    """


@binary(rule=rules.INTEGER)
def lcm(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the least common multiple, which is never negative.

    Args:
        x: First integer tensor.
        y: Second integer tensor; broadcasts with x.
    """


absolute = abs
fma = multiply_add
mod = remainder
power = pow
true_divide = divide
