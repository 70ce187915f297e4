"""Weight-only quantization of trained models, for inference."""

from ember_ml.nn.layers.channel_mixing.quantized import Bits as Bits
from ember_ml.nn.quantization.model import quantize as quantize
from ember_ml.nn.quantization.report import QuantizationReport as QuantizationReport
