"""Activations: functions applied between layers.

Each exists as a function (`relu`) and as a module (`ReLU`). `get` looks one up by name.
"""

from ember_ml.nn.activations import functions
from ember_ml.nn.activations.along_axis import GLU, LogSoftmax, Softmax, Softmin, Sparsemax
from ember_ml.nn.activations.base import Activation, get, is_elementwise
from ember_ml.nn.activations.fixed import (
    SELU,
    HardSigmoid,
    HardSwish,
    Identity,
    LeCunTanh,
    LogSigmoid,
    Mish,
    ReLU,
    ReLU6,
    ReLUSquared,
    Sigmoid,
    SiLU,
    Softsign,
    Tanh,
    TanhShrink,
)
from ember_ml.nn.activations.functions import *  # noqa: F403
from ember_ml.nn.activations.parametric import (
    CELU,
    ELU,
    GELU,
    HardShrink,
    HardTanh,
    LeakyReLU,
    PReLU,
    Sine,
    Softplus,
    SoftShrink,
    Threshold,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Activation",
    "HardShrink",
    "HardSigmoid",
    "HardSwish",
    "HardTanh",
    "Identity",
    "LeCunTanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "ReLUSquared",
    "SiLU",
    "Sigmoid",
    "Sine",
    "SoftShrink",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softsign",
    "Sparsemax",
    "Tanh",
    "TanhShrink",
    "Threshold",
    "get",
    "is_elementwise",
]
__all__ += functions.__all__
