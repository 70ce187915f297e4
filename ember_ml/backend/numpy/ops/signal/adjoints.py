"""Adjoints of causal convolutions."""

from __future__ import annotations

from ember_ml.backend.numpy.ops.signal.long_convolution import (
    gated_long_conv_adjoint as gated_long_conv_adjoint,
)
from ember_ml.backend.numpy.ops.signal.long_convolution import (
    long_conv_adjoint as long_conv_adjoint,
)

__all__ = [
    *("causal_conv1d_adjoint", "causal_conv1d_silu_adjoint"),
    *("gated_long_conv_adjoint", "long_conv_adjoint"),
]
