"""Activation functions: those of `ops`, and a few composed from them."""

from __future__ import annotations

from typing import TypeVar

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops import (
    celu,
    elu,
    gelu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softmin,
    softplus,
    softsign,
    sparsemax,
    swiglu,
    swish,
    tanh,
    threshold,
)
from ember_ml.ops import hardtanh as hard_tanh
from ember_ml.ops import tanhshrink as tanh_shrink

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


T = TypeVar("T")


def identity(x: T) -> T:
    """Return x unchanged."""
    return x


def relu_squared(x: TensorLike) -> Tensor:
    """Return max(x, 0)^2 (So et al., "Primer", 2021).

    Args:
        x: Input.
    """
    return ops.square(ops.relu(x))


def lecun_tanh(x: TensorLike) -> Tensor:
    """Return 1.7159 tanh(2 x / 3) (LeCun et al., "Efficient BackProp", 1998).

    Args:
        x: Input.
    """
    return ops.multiply(ops.tanh(ops.multiply(x, 2.0 / 3.0)), 1.7159)


def sine(x: TensorLike, frequency: float = 1.0) -> Tensor:
    """Return sin(frequency x) (Sitzmann et al., "Implicit Neural Representations", 2020).

    Args:
        x: Input.
        frequency: Angular frequency. Default: 1.
    """
    return ops.sin(x if frequency == 1.0 else ops.multiply(x, frequency))


linear = identity
