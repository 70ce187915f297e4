"""Configs of the wirings: of neurons, and of blocks."""

from ember_ml.configs.wirings.blocks import GraphWiringConfig as GraphWiringConfig
from ember_ml.configs.wirings.blocks import NCPWiringConfig as NCPWiringConfig
from ember_ml.configs.wirings.blocks import ResidualWiringConfig as ResidualWiringConfig
from ember_ml.configs.wirings.blocks import SequentialWiringConfig as SequentialWiringConfig
from ember_ml.configs.wirings.neurons import AutoNCPConfig as AutoNCPConfig
from ember_ml.configs.wirings.neurons import CustomWiringConfig as CustomWiringConfig
from ember_ml.configs.wirings.neurons import FullyConnectedConfig as FullyConnectedConfig
from ember_ml.configs.wirings.neurons import NCPConfig as NCPConfig
from ember_ml.configs.wirings.neurons import RandomConfig as RandomConfig
