"""Elementwise parts of complex numbers."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["angle", "conj", "conjugate", "imag", "real"]


@unary(rule=rules.NUMERIC)
def real(x: TensorLike) -> Tensor:
    """Return the real part; x itself if it is real.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def imag(x: TensorLike) -> Tensor:
    """Return the imaginary part; zero if x is real.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.NUMERIC)
def conj(x: TensorLike) -> Tensor:
    """Return the complex conjugate; x itself if it is real.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.FLOAT)
def angle(x: TensorLike) -> Tensor:
    """Return the argument of x in [-pi, pi]: atan2(imag(x), real(x)).

    Args:
        x: Input tensor.
    """


conjugate = conj
