"""The activations as functions: ops, and a few made of them."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops import celu as celu
from ember_ml.ops import elu as elu
from ember_ml.ops import gelu as gelu
from ember_ml.ops import glu as glu
from ember_ml.ops import hard_shrink as hard_shrink
from ember_ml.ops import hard_sigmoid as hard_sigmoid
from ember_ml.ops import hard_silu as hard_silu
from ember_ml.ops import hard_swish as hard_swish
from ember_ml.ops import hardtanh as hard_tanh
from ember_ml.ops import leaky_relu as leaky_relu
from ember_ml.ops import log_sigmoid as log_sigmoid
from ember_ml.ops import log_softmax as log_softmax
from ember_ml.ops import mish as mish
from ember_ml.ops import prelu as prelu
from ember_ml.ops import relu as relu
from ember_ml.ops import relu6 as relu6
from ember_ml.ops import selu as selu
from ember_ml.ops import sigmoid as sigmoid
from ember_ml.ops import silu as silu
from ember_ml.ops import soft_shrink as soft_shrink
from ember_ml.ops import softmax as softmax
from ember_ml.ops import softmin as softmin
from ember_ml.ops import softplus as softplus
from ember_ml.ops import softsign as softsign
from ember_ml.ops import sparsemax as sparsemax
from ember_ml.ops import swiglu as swiglu
from ember_ml.ops import swish as swish
from ember_ml.ops import tanh as tanh
from ember_ml.ops import tanhshrink as tanh_shrink
from ember_ml.ops import threshold as threshold

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "lecun_tanh",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_squared",
    "selu",
    "sigmoid",
    "silu",
    "sine",
    "soft_shrink",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "sparsemax",
    "swiglu",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]


def identity(x: Any) -> Any:
    """x."""
    return x


def relu_squared(x: TensorLike) -> Tensor:
    """max(x, 0)^2 (So et al., "Primer", 2021)."""
    return ops.square(ops.relu(x))


def lecun_tanh(x: TensorLike) -> Tensor:
    """1.7159 tanh(2 x / 3) (LeCun et al., "Efficient BackProp", 1998)."""
    return ops.multiply(ops.tanh(ops.multiply(x, 2.0 / 3.0)), 1.7159)


def sine(x: TensorLike, frequency: float = 1.0) -> Tensor:
    """sin(frequency x) (Sitzmann et al., "Implicit Neural Representations", 2020)."""
    return ops.sin(x if frequency == 1.0 else ops.multiply(x, frequency))


linear = identity
