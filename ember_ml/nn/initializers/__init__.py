"""Initial values of parameters: bit-identical on every backend for the same seed."""

from ember_ml.nn.initializers.base import Initializer, get
from ember_ml.nn.initializers.constant import Constant, Identity, Ones, Zeros
from ember_ml.nn.initializers.random import Normal, Orthogonal, Sparse, TruncatedNormal, Uniform
from ember_ml.nn.initializers.scaled import Glorot, He, Lecun

__all__ = [
    "Constant",
    "Glorot",
    "He",
    "Identity",
    "Initializer",
    "Lecun",
    "Normal",
    "Ones",
    "Orthogonal",
    "Sparse",
    "TruncatedNormal",
    "Uniform",
    "Zeros",
    "get",
]
