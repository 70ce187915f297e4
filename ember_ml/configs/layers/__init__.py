"""Config classes of the layers, derived from their signatures."""

from ember_ml.configs.derive import attach
from ember_ml.configs.layers import channel_mixing as channel_mixing
from ember_ml.configs.layers import sequence_mixing as sequence_mixing

__getattr__, __dir__ = attach(__name__)
