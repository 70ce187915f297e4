"""Small classification task, and trainers for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml import nn, ops
from ember_ml.nn import layers
from ember_ml.training import Trainer

X = np.random.default_rng(0).standard_normal((48, 5)).astype("float32")
Y = (X[:, 0] + X[:, 1] > 0).astype("int64") + (X[:, 2] > 1)


def mlp() -> nn.Module:
    """Return a model with the same weights each time, on the active backend."""
    ops.random.set_seed(1)
    return layers.MLP(5, [8], 3, activation="tanh")


def trainer(model: nn.Module | None = None, **options: Any) -> Trainer:
    """Return a trainer; the default optimizer is Adam."""
    options = {"optimizer": "adam", "learning_rate": 0.02, "progress": False, **options}
    return Trainer(model or mlp(), options.pop("loss", "cross_entropy"), **options)
