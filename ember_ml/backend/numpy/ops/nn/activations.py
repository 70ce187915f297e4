"""Activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml.backend.numpy.error_function import erf as exact_erf
from ember_ml.backend.numpy.ops.nn._kernel import kernel

# erf(x) / x as a ratio of polynomials in x^2, good to float32; from Eigen.
_ERF_TOP = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_ERF_BOTTOM = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
    *(-7.37332916720468e-03, -1.42647390514189e-02),
)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += x.dtype.type(coefficient)
    return out


def _erf(x: Any) -> Any:
    if x.dtype == np.float64:
        return exact_erf(x)
    x = np.clip(x, -4.0, 4.0)
    square = np.asarray(x * x)
    return x * _polynomial(_ERF_TOP, square) / _polynomial(_ERF_BOTTOM, square)


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


@kernel
def silu(x: Any) -> Any:
    return x / (1.0 + np.exp(-x))


@kernel
def gelu(x: Any, approximate: bool = False) -> Any:
    if approximate in (True, "tanh"):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + np.tanh(inner))
    return 0.5 * x * (1.0 + _erf(x * math.sqrt(0.5)))
