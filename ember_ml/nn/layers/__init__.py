"""Layers: channel mixers act on features, sequence mixers on positions, spatial ones on images."""

from ember_ml.nn.layers import channel_mixing, sequence_mixing, spatial
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import *  # noqa: F403
from ember_ml.nn.layers.sequence_mixing import *  # noqa: F403
from ember_ml.nn.layers.spatial import *  # noqa: F403

__all__ = ["Layer", "channel_mixing", "sequence_mixing", "spatial"]
__all__ += channel_mixing.__all__
__all__ += sequence_mixing.__all__
__all__ += spatial.__all__
