"""The parts of complex numbers."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.autodiff.rules._shared import conj

by_operand(ops.real, x=lambda g, out, x: g)
by_operand(ops.conj, x=lambda g, out, x: conj(g))


@rule(ops.imag)
def _imag(g: Any, out: Any, x: Any) -> Any:
    return g * 1j if x.dtype.kind == "complex" else ops.zeros_like(g)


@rule(ops.angle)
def _angle(g: Any, out: Any, x: Any) -> Any:
    """0 at zero, where an angle has no slope."""
    if x.dtype.kind != "complex":
        return ops.zeros_like(g)
    zero = ops.equal(x, 0)
    return ops.where(zero, 0, g * 1j / conj(ops.where(zero, 1, x)))
