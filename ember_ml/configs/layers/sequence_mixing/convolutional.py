"""Configs of the mixers that are convolutions along time."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, OptionalActivationField, Size


class ShortConvConfig(Config):
    """A few taps for each channel."""

    component: ClassVar[str] = "layers/short_conv"
    features: Size
    kernel_size: Size = 4
    bias: Flag = True
    activation: OptionalActivationField = None


class FFTConvConfig(Config):
    """A long filter for each channel, each of its taps learned."""

    component: ClassVar[str] = "layers/fft_conv"
    features: Size
    max_length: Size = 1280


class HyenaConfig(Config):
    """Gates around a long convolution whose filter is a small network of time."""

    component: ClassVar[str] = "layers/hyena"
    features: Size
    inner_factor: Size = 4
    projection_groups: Size = 4
    short_kernel_size: Size = 3
    filter_order: Size = 4
    max_length: Size = 1280


class MultiHeadHyenaConfig(Config):
    """Hyena whose keys and values meet in an outer product, head by head."""

    component: ClassVar[str] = "layers/multi_head_hyena"
    features: Size
    num_heads: Size = 16
    inner_factor: Size = 1
    projection_groups: Size = 4
    short_kernel_size: Size = 3
    filter_order: Size = 2
    max_length: Size = 1280


class HyenaExpertsConfig(Config):
    """Hyena whose channels are experts among which a router chooses."""

    component: ClassVar[str] = "layers/hyena_experts"
    features: Size
    num_experts: Size = 8
    expert_features: Size = 16
    top_k: Size = 2
    short_kernel_size: Size = 3
    filter_order: Size = 16
    max_length: Size = 1280
