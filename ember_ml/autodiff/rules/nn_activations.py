"""Activations, where a formula is quicker than their bodies."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.ops import nn

_SLOPE = math.sqrt(2 / math.pi)

by_operand(nn.relu, x=lambda g, out, x: g * ops.sign(out))


@rule(nn.silu)
def _silu(g: Any, out: Any, x: Any) -> Any:
    s = ops.sigmoid(x)
    return g * (s + out * (1 - s))


@rule(nn.gelu)
def _gelu(g: Any, out: Any, x: Any, approximate: bool = False) -> Any:
    square = x * x
    if approximate in (True, "tanh"):
        t = ops.tanh(x * (_SLOPE + _SLOPE * 0.044715 * square))
        inner = x * (1 - t * t) * (_SLOPE + 3 * _SLOPE * 0.044715 * square)
        return g * (0.5 * (1 + t + inner))
    below = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))
    return g * (below + x * (ops.exp(square * -0.5) / math.sqrt(2 * math.pi)))
