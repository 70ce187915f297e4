"""Elementwise trigonometric and hyperbolic functions and their inverses."""

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
    """Return the sine of x.

    Args:
        x: Angle in radians.
    """


@unary(rule=rules.FLOAT)
def cos(x: TensorLike) -> Tensor:
    """Return the cosine of x.

    Args:
        x: Angle in radians.
    """


@unary(rule=rules.FLOAT)
def tan(x: TensorLike) -> Tensor:
    """Return the tangent of x.

    Args:
        x: Angle in radians.
    """


@unary(rule=rules.FLOAT)
def asin(x: TensorLike) -> Tensor:
    """Return the inverse sine, in [-pi/2, pi/2].

    Args:
        x: Input tensor, with values in [-1, 1]; others return NaN.
    """


@unary(rule=rules.FLOAT)
def acos(x: TensorLike) -> Tensor:
    """Return the inverse cosine, in [0, pi].

    Args:
        x: Input tensor, with values in [-1, 1]; others return NaN.
    """


@unary(rule=rules.FLOAT)
def atan(x: TensorLike) -> Tensor:
    """Return the inverse tangent, in [-pi/2, pi/2].

    Args:
        x: Input tensor.
    """


@binary(rule=rules.REAL_FLOAT)
def atan2(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the angle of the point (y, x) in [-pi, pi]: atan(x / y) in the right quadrant.

    Args:
        x: Ordinate of the point.
        y: Abscissa of the point; broadcasts with x.
    """


@binary(rule=rules.REAL_FLOAT)
def hypot(x: TensorLike, y: TensorLike) -> Tensor:
    """Return sqrt(x**2 + y**2) without intermediate overflow.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@unary(rule=rules.FLOAT)
def sinh(x: TensorLike) -> Tensor:
    """Return the hyperbolic sine of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def cosh(x: TensorLike) -> Tensor:
    """Return the hyperbolic cosine of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def tanh(x: TensorLike) -> Tensor:
    """Return the hyperbolic tangent of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def asinh(x: TensorLike) -> Tensor:
    """Return the inverse hyperbolic sine of x.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def acosh(x: TensorLike) -> Tensor:
    """Return the inverse hyperbolic cosine of x.

    Args:
        x: Input tensor, with values of at least 1; others return NaN.
    """


@unary(rule=rules.FLOAT)
def atanh(x: TensorLike) -> Tensor:
    """Return the inverse hyperbolic tangent of x.

    Args:
        x: Input tensor, with values in [-1, 1]; others return NaN.
    """


@unary(rule=rules.FLOAT)
def sinc(x: TensorLike) -> Tensor:
    """Return sin(pi x) / (pi x), and 1 at zero.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL_FLOAT)
def deg2rad(x: TensorLike) -> Tensor:
    """Return x converted from degrees to radians: pi / 180 * x.

    Args:
        x: Angle in degrees.
    """


@unary(rule=rules.REAL_FLOAT)
def rad2deg(x: TensorLike) -> Tensor:
    """Return x converted from radians to degrees: 180 / pi * x.

    Args:
        x: Angle in radians.
    """


arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
degrees = rad2deg
radians = deg2rad
