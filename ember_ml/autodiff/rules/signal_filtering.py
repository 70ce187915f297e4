"""Correlations of signals."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._shared import conj
from ember_ml.ops.signal.filtering import convolve, correlate


def _in_full(g: Any, length: int, taps: int, mode: str) -> Any:
    """The gradient of mode "full", of which the modes give a part."""
    first = {
        "full": 0,
        "valid": min(length, taps) - 1,
        "same": (taps - 1) // 2 if length >= taps else length // 2,
    }[mode]
    return ops.pad_constant(g, [(first, length + taps - 1 - first - g.shape[0])])


@rule(correlate)
def _(g: Any, out: Any, x: Any, y: Any, mode: str = "valid") -> Any:
    g = _in_full(g, x.shape[0], y.shape[0], mode)
    return convolve(g, y, "valid"), ops.flip(conj(correlate(g, x, "valid")))
