"""Scalings of the rotary frequencies, for sequences longer than those of the pretraining."""

from ember_ml.nn.rope_scalings.base import RopeScaling, frequencies, get
from ember_ml.nn.rope_scalings.by_length import DynamicScaling, LongRoPE
from ember_ml.nn.rope_scalings.fixed import LinearScaling, Llama3Scaling, YaRN

__all__ = [
    "DynamicScaling",
    "LinearScaling",
    "Llama3Scaling",
    "LongRoPE",
    "RopeScaling",
    "YaRN",
    "frequencies",
    "get",
]
