"""Long convolutions in blocks."""

from __future__ import annotations

from ember_ml.backend.torch.gated_convolution import gated_conv_inputs as gated_conv_inputs
from ember_ml.backend.torch.gated_convolution import gated_long_conv as gated_long_conv
from ember_ml.backend.torch.long_convolution import long_conv as long_conv
