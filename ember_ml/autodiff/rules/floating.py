"""Signs and exponents of floating-point numbers."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule

by_operand(
    ops.copysign,
    x=lambda g, out, x, y: g * (ops.sign(x) * ops.sign(out)),
    y=lambda g, out, x, y: ops.zeros_like(g),
)
by_operand(ops.ldexp, x=lambda g, out, x, exponent: ops.ldexp(g, exponent))
by_operand(ops.frexp, x=lambda g, out, x: ops.ldexp(g[0], -out[1]))


@rule(ops.nan_to_num)
def _nan_to_num(
    g: Any,
    out: Any,
    x: Any,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    if x.dtype.kind != "complex":
        return ops.where(ops.isfinite(x), g, 0)
    real = ops.where(ops.isfinite(ops.real(x)), ops.real(g), 0)
    imag = ops.where(ops.isfinite(ops.imag(x)), ops.imag(g), 0)
    return real + 1j * imag
