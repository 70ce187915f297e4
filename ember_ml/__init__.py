"""Ember ML: sequence models from mechanistic primitives, on NumPy, PyTorch and MLX."""

from typing import TYPE_CHECKING

from ember_ml import autodiff as autodiff
from ember_ml import backend as backend
from ember_ml import nn as nn
from ember_ml import ops as ops
from ember_ml._core import namespaces as _namespaces
from ember_ml._core.errors import BackendTransferWarning as BackendTransferWarning
from ember_ml._core.version import VERSION as _VERSION
from ember_ml.autodiff import GradientTape as GradientTape
from ember_ml.backend import auto_select_backend as auto_select_backend
from ember_ml.backend import get_backend as get_backend
from ember_ml.backend import set_backend as set_backend
from ember_ml.backend import use_backend as use_backend
from ember_ml.backend.devices import set_device as set_device

if TYPE_CHECKING:
    from ember_ml import configs as configs
    from ember_ml import data as data
    from ember_ml import distributed as distributed
    from ember_ml import features as features
    from ember_ml import interop as interop
    from ember_ml import mad as mad
    from ember_ml import memory as memory
    from ember_ml import registry as registry
    from ember_ml import serving as serving
    from ember_ml import training as training
    from ember_ml.nn.checkpoint import save as save
    from ember_ml.nn.models.loading import load as load

__version__ = _VERSION

__getattr__, __dir__ = _namespaces.attach(
    __name__,
    {
        "configs": "ember_ml.configs",
        "data": "ember_ml.data",
        "distributed": "ember_ml.distributed",
        "features": "ember_ml.features",
        "interop": "ember_ml.interop",
        "load": "ember_ml.nn.models.loading",
        "mad": "ember_ml.mad",
        "memory": "ember_ml.memory",
        "registry": "ember_ml.registry",
        "save": "ember_ml.nn.checkpoint",
        "serving": "ember_ml.serving",
        "training": "ember_ml.training",
    },
)
