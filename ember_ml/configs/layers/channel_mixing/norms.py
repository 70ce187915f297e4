"""Configs of the norms."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, Positive, Probability, Size


class LayerNormConfig(Config):
    """Mean 0 and variance 1 over the features of each position."""

    component: ClassVar[str] = "layers/layer_norm"
    features: Size
    eps: Positive = 1e-5
    affine: Flag = True
    bias: Flag = True


class RMSNormConfig(Config):
    """Root mean square 1 over the features of each position."""

    component: ClassVar[str] = "layers/rms_norm"
    features: Size
    eps: Positive = 1e-6
    affine: Flag = True


class BatchNormConfig(Config):
    """Mean 0 and variance 1 of each channel over the batch."""

    component: ClassVar[str] = "layers/batch_norm"
    features: Size
    axis: int = -1
    momentum: Probability = 0.1
    eps: Positive = 1e-5
    affine: Flag = True


class GroupNormConfig(Config):
    """Mean 0 and variance 1 over groups of channels of each example."""

    component: ClassVar[str] = "layers/group_norm"
    num_groups: Size
    features: Size
    eps: Positive = 1e-5
    affine: Flag = True
