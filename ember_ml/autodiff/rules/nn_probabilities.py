"""Softmax."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.ops import nn


@rule(nn.softmax)
def _softmax(g: Any, out: Any, x: Any, axis: int = -1) -> Any:
    return out * (g - ops.sum(g * out, axis, keepdims=True))


@rule(nn.log_softmax)
def _log_softmax(g: Any, out: Any, x: Any, axis: int = -1) -> Any:
    return g - ops.exp(out) * ops.sum(g, axis, keepdims=True)
