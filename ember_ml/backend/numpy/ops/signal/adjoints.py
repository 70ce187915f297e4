"""Adjoints of causal convolutions."""

from __future__ import annotations

from ember_ml.backend.numpy.causal_convolution import adjoint as causal_conv1d_adjoint
from ember_ml.backend.numpy.causal_convolution import adjoint_silu as causal_conv1d_silu_adjoint
from ember_ml.backend.numpy.ops.signal.long_convolution import (
    gated_long_conv_adjoint,
    long_conv_adjoint,
)

# A literal list: ruff removes imports that it does not find in `__all__`.
__all__ = [
    "causal_conv1d_adjoint",
    "causal_conv1d_silu_adjoint",
    "gated_long_conv_adjoint",
    "long_conv_adjoint",
]
