"""Configs of the RWKV time mixers."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Positive, Size


class RWKV5TimeMixerConfig(Config):
    """A state of each head that decays at learned rates."""

    component: ClassVar[str] = "layers/rwkv5_time_mixer"
    features: Size
    num_heads: Size = 8
    eps: Positive = 6.4e-4


class RWKV6TimeMixerConfig(Config):
    """A state of each head that decays as the input says."""

    component: ClassVar[str] = "layers/rwkv6_time_mixer"
    features: Size
    num_heads: Size = 8
    shift_rank: Size = 32
    decay_rank: Size = 64
    eps: Positive = 6.4e-4
