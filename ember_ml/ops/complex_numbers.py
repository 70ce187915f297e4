"""The parts of complex numbers, element by element."""

from __future__ import annotations

from ember_ml._core import rules
from ember_ml._core.dispatch import unary
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["angle", "conj", "conjugate", "imag", "real"]


@unary(rule=rules.NUMERIC)
def real(x: TensorLike) -> Tensor:
    """The real part; a real tensor is its own."""


@unary(rule=rules.NUMERIC)
def imag(x: TensorLike) -> Tensor:
    """The imaginary part, zero for a real tensor."""


@unary(rule=rules.NUMERIC)
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate; a real tensor is its own."""


@unary(rule=rules.FLOAT)
def angle(x: TensorLike) -> Tensor:
    """The argument of a complex number in [-pi, pi]: atan2(imag(x), real(x))."""


conjugate = conj
