"""Neural networks: tensors and, on top of them, modules."""

from ember_ml.nn import tensor as tensor
from ember_ml.nn.parameter import Parameter as Parameter
