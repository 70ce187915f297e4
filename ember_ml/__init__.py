"""Ember ML: sequence models from mechanistic primitives, on NumPy, PyTorch and MLX."""

from ember_ml import autodiff as autodiff
from ember_ml import backend as backend
from ember_ml import nn as nn
from ember_ml import ops as ops
from ember_ml._core.errors import BackendTransferWarning as BackendTransferWarning
from ember_ml.autodiff import GradientTape as GradientTape
from ember_ml.backend import auto_select_backend as auto_select_backend
from ember_ml.backend import get_backend as get_backend
from ember_ml.backend import set_backend as set_backend
from ember_ml.backend import use_backend as use_backend
from ember_ml.backend.devices import set_device as set_device

__version__ = "0.1.0"
