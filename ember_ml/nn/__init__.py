"""Neural networks: tensors, parameters, modules, layers, blocks and models."""

from typing import TYPE_CHECKING

from ember_ml._core import namespaces as _namespaces
from ember_ml.nn import tensor as tensor
from ember_ml.nn.containers import Identity as Identity
from ember_ml.nn.containers import ModuleDict as ModuleDict
from ember_ml.nn.containers import ModuleList as ModuleList
from ember_ml.nn.functional import functional_call as functional_call
from ember_ml.nn.functional import value_and_grad as value_and_grad
from ember_ml.nn.module import Module as Module
from ember_ml.nn.parameter import Buffer as Buffer
from ember_ml.nn.parameter import Parameter as Parameter
from ember_ml.nn.state_dict import StateDictError as StateDictError

if TYPE_CHECKING:
    from ember_ml.nn import activations as activations
    from ember_ml.nn import blocks as blocks
    from ember_ml.nn import features as features
    from ember_ml.nn import initializers as initializers
    from ember_ml.nn import layers as layers
    from ember_ml.nn import models as models
    from ember_ml.nn import pipeline as pipeline
    from ember_ml.nn import quantization as quantization
    from ember_ml.nn import rope_scalings as rope_scalings
    from ember_ml.nn import surrogates as surrogates
    from ember_ml.nn import wirings as wirings
    from ember_ml.nn.models.base import Model as Model
    from ember_ml.nn.sequential import Sequential as Sequential

_PARTS = (
    *("activations", "blocks", "features", "initializers", "layers", "models", "modules"),
    *("pipeline", "quantization", "rope_scalings", "surrogates", "wirings"),
)
__getattr__, __dir__ = _namespaces.attach(
    __name__,
    {part: f"{__name__}.{part}" for part in _PARTS}
    | {"Model": "ember_ml.nn.models.base", "Sequential": "ember_ml.nn.sequential"},
)
