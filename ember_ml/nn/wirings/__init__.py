"""Wirings: graphs of neurons, with the signs of their synapses, and graphs of blocks."""

from ember_ml.nn.wirings._plan import Connection as Connection
from ember_ml.nn.wirings.base import NeuronWiring as NeuronWiring
from ember_ml.nn.wirings.base import WiringError as WiringError
from ember_ml.nn.wirings.blocks import BlockWiring as BlockWiring
from ember_ml.nn.wirings.blocks import BlockWiring as Wiring  # noqa: F401
from ember_ml.nn.wirings.circuits import NCP as NCP
from ember_ml.nn.wirings.circuits import AutoNCP as AutoNCP
from ember_ml.nn.wirings.graph import GraphWiring as GraphWiring
from ember_ml.nn.wirings.measures import Communities as Communities
from ember_ml.nn.wirings.measures import communities as communities
from ember_ml.nn.wirings.measures import distance_correlation as distance_correlation
from ember_ml.nn.wirings.measures import modularity as modularity
from ember_ml.nn.wirings.measures import small_worldness as small_worldness
from ember_ml.nn.wirings.ncp_blocks import NCPWiring as NCPWiring
from ember_ml.nn.wirings.plain import CustomWiring as CustomWiring
from ember_ml.nn.wirings.plain import FullyConnected as FullyConnected
from ember_ml.nn.wirings.plain import Random as Random
from ember_ml.nn.wirings.stacks import ResidualWiring as ResidualWiring
from ember_ml.nn.wirings.stacks import SequentialWiring as SequentialWiring
