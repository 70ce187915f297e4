"""Small regression task, and trainers for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml import nn, ops
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback

X = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


def trainer(*callbacks: Callback, **options: Any) -> Trainer:
    """Return a trainer of a dense layer with the same weights each time."""
    ops.random.set_seed(1)
    model = nn.layers.Dense(3, 1)
    return Trainer(model, "mse", seed=1, callbacks=callbacks, progress=False, **options)
