"""Networks in space: positions of neurons, cost of their connections and pruning."""

from ember_ml.nn.space.embedding import SpatialEmbedding as SpatialEmbedding
from ember_ml.nn.space.layouts import grid_shape as grid_shape
from ember_ml.nn.space.network import SpatialNetwork as SpatialNetwork
from ember_ml.nn.space.pruning import Sparsity as Sparsity
from ember_ml.nn.space.pruning import pruning_mask as pruning_mask
from ember_ml.nn.space.pruning import sparsity as sparsity
from ember_ml.nn.space.wiring_cost import WiringCost as WiringCost
from ember_ml.nn.space.wiring_cost import communicability as communicability
