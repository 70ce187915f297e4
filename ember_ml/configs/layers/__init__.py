"""Configs of the layers."""

from ember_ml.configs.layers.channel_mixing import *  # noqa: F403
from ember_ml.configs.layers.containers import SequentialConfig as SequentialConfig
from ember_ml.configs.layers.sequence_mixing import *  # noqa: F403
