"""Arithmetic, element by element."""

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
    """x + y. Of bools: logical or."""


@binary
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y."""


@binary(rule=rules.ANY)
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """x * y. Of bools: logical and."""


@binary(rule=rules.FLOAT)
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y."""


@binary(rule=rules.REAL)
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y rounded down. An integer divided by zero gives 0."""


@binary(rule=rules.REAL)
def remainder(x: TensorLike, y: TensorLike) -> Tensor:
    """x - floor(x / y) * y, which has the sign of y. Of an integer by zero: 0."""


@binary(rule=rules.REAL)
def fmod(x: TensorLike, y: TensorLike) -> Tensor:
    """x - trunc(x / y) * y, which has the sign of x. Of an integer by zero: 0."""


@op(rule=rules.REAL)
def divmod(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """(floor_divide(x, y), remainder(x, y))."""


@binary
def pow(x: TensorLike, y: TensorLike) -> Tensor:
    """x to the power of y. Integers stay integers: a negative power is rounded towards zero."""


@binary(rule=rules.FLOAT)
def float_power(x: TensorLike, y: TensorLike) -> Tensor:
    """x to the power of y, as floats."""


@unary(rule=rules.NUMERIC)
def negative(x: TensorLike) -> Tensor:
    """-x."""


@unary(rule=rules.NUMERIC)
def positive(x: TensorLike) -> Tensor:
    """+x."""


@unary(rule=rules.NUMERIC)
def abs(x: TensorLike) -> Tensor:
    """|x|, a real number."""


@unary(rule=rules.NUMERIC)
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1; x / |x| of a complex number; NaN of NaN."""


@unary(rule=rules.NUMERIC)
def square(x: TensorLike) -> Tensor:
    """x * x."""


@unary(rule=rules.FLOAT)
def reciprocal(x: TensorLike) -> Tensor:
    """1 / x."""


@op(rule=rules.NUMERIC)
def multiply_add(x: TensorLike, y: TensorLike, z: TensorLike) -> Tensor:
    """x * y + z."""


@op(rule=rules.FLOAT)
def lerp(x: TensorLike, y: TensorLike, weight: TensorLike) -> Tensor:
    """x + weight * (y - x): x where the weight is 0, y where it is 1."""


@binary(rule=rules.REAL_FLOAT)
def heaviside(x: TensorLike, y: TensorLike) -> Tensor:
    """0 where x < 0, 1 where x > 0, y where x is 0."""


@binary(rule=rules.INTEGER)
def gcd(x: TensorLike, y: TensorLike) -> Tensor:
    """The greatest common divisor, not negative."""


@binary(rule=rules.INTEGER)
def lcm(x: TensorLike, y: TensorLike) -> Tensor:
    """The least common multiple, not negative."""


absolute = abs
fma = multiply_add
mod = remainder
power = pow
true_divide = divide
