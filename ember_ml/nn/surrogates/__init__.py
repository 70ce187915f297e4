"""Surrogate gradients of spikes."""

from ember_ml.nn.surrogates.base import Surrogate, get
from ember_ml.nn.surrogates.functions import (
    Atan,
    FastSigmoid,
    Sigmoid,
    StraightThrough,
    Triangle,
)

__all__ = ["Atan", "FastSigmoid", "Sigmoid", "StraightThrough", "Surrogate", "Triangle", "get"]
