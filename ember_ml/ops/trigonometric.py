"""Circular and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "hypot",
    "rad2deg",
    "radians",
    "sin",
    "sinc",
    "sinh",
    "tan",
    "tanh",
]


@unary(rule=rules.FLOAT)
def sin(x: TensorLike) -> Tensor:
    """The sine of x in radians."""


@unary(rule=rules.FLOAT)
def cos(x: TensorLike) -> Tensor:
    """The cosine of x in radians."""


@unary(rule=rules.FLOAT)
def tan(x: TensorLike) -> Tensor:
    """The tangent of x in radians."""


@unary(rule=rules.FLOAT)
def asin(x: TensorLike) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""


@unary(rule=rules.FLOAT)
def acos(x: TensorLike) -> Tensor:
    """The inverse cosine, in [0, pi]."""


@unary(rule=rules.FLOAT)
def atan(x: TensorLike) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""


@binary(rule=rules.REAL_FLOAT)
def atan2(x: TensorLike, y: TensorLike) -> Tensor:
    """The angle of the point (y, x), in [-pi, pi]: atan(x / y) with the quadrant right."""


@binary(rule=rules.REAL_FLOAT)
def hypot(x: TensorLike, y: TensorLike) -> Tensor:
    """sqrt(x**2 + y**2), without overflow in between."""


@unary(rule=rules.FLOAT)
def sinh(x: TensorLike) -> Tensor:
    """The hyperbolic sine."""


@unary(rule=rules.FLOAT)
def cosh(x: TensorLike) -> Tensor:
    """The hyperbolic cosine."""


@unary(rule=rules.FLOAT)
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""


@unary(rule=rules.FLOAT)
def asinh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic sine."""


@unary(rule=rules.FLOAT)
def acosh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine."""


@unary(rule=rules.FLOAT)
def atanh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent."""


@unary(rule=rules.FLOAT)
def sinc(x: TensorLike) -> Tensor:
    """sin(pi x) / (pi x), 1 at zero."""


@unary(rule=rules.REAL_FLOAT)
def deg2rad(x: TensorLike) -> Tensor:
    """Degrees to radians: pi / 180 * x."""


@unary(rule=rules.REAL_FLOAT)
def rad2deg(x: TensorLike) -> Tensor:
    """Radians to degrees: 180 / pi * x."""


arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
degrees = rad2deg
radians = deg2rad
