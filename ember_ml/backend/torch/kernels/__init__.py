"""Triton kernels of the torch backend, for CUDA and ROCm devices.

Each kernel is an op of `torch.library` with a fake implementation and a gradient, in a module with
a reference in plain torch. The programs that run on the GPU are in `programs`, which alone imports
Triton, at the first launch.

`EMBER_ML_TRITON=0` disables all kernels. `TRITON_INTERPRET=1` runs them on the CPU in Triton's
interpreter, which is slow and meant for tests.
"""

from __future__ import annotations

from ember_ml.backend.torch.kernels.availability import REASON as REASON
from ember_ml.backend.torch.kernels.availability import serves as serves
from ember_ml.backend.torch.kernels.availability import unavailable as unavailable

if not REASON:  # defining ops takes time
    from ember_ml.backend.torch.kernels import causal_conv1d as causal_conv1d
    from ember_ml.backend.torch.kernels import cross_entropy as cross_entropy
    from ember_ml.backend.torch.kernels import gated_delta_rule as gated_delta_rule
    from ember_ml.backend.torch.kernels import gated_linear_attention as gated_linear_attention
    from ember_ml.backend.torch.kernels import gated_rms_norm as gated_rms_norm
    from ember_ml.backend.torch.kernels import linear_recurrence as linear_recurrence
    from ember_ml.backend.torch.kernels import long_conv as long_conv
    from ember_ml.backend.torch.kernels import selective_scan as selective_scan
    from ember_ml.backend.torch.kernels import spiking_scan as spiking_scan
