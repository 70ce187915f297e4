"""Wirings: graphs of neurons, with the signs of their synapses."""

from ember_ml.nn.wirings.base import NeuronWiring as NeuronWiring
from ember_ml.nn.wirings.base import WiringError as WiringError
from ember_ml.nn.wirings.circuits import NCP as NCP
from ember_ml.nn.wirings.circuits import AutoNCP as AutoNCP
from ember_ml.nn.wirings.plain import CustomWiring as CustomWiring
from ember_ml.nn.wirings.plain import FullyConnected as FullyConnected
from ember_ml.nn.wirings.plain import Random as Random
