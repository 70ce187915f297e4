"""Configs of the RWKV channel mixers."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Size


class RWKV5ChannelMixerConfig(Config):
    """Squared ReLUs of a position and the one before, behind a gate."""

    component: ClassVar[str] = "layers/rwkv5_channel_mixer"
    features: Size
    inner_features: Size | None = None


class RWKV6ChannelMixerConfig(RWKV5ChannelMixerConfig):
    """The same in the sixth version."""

    component: ClassVar[str] = "layers/rwkv6_channel_mixer"
