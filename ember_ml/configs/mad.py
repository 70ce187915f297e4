"""Config of one training run of MAD."""

from __future__ import annotations

from typing import Annotated

from ember_ml.configs.base import Config
from ember_ml.configs.fields import (
    Component,
    NonNegative,
    NormName,
    Positive,
    Probability,
    Seed,
    Size,
)
from ember_ml.configs.patterns import LayersField


class RunConfig(Config):
    """One model trained on one task."""

    architecture: str
    """Name in tables and reports."""
    layers: LayersField
    task: Annotated[Config, Component("tasks")]
    hidden_size: Size = 128
    norm: NormName = "rms_norm"
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    batch_size: Size = 128
    steps: Size = 20000
    """Maximum number of steps, over which a cosine schedule lowers the learning rate to 1e-6."""
    evaluate_every: Size = 200
    """Steps between two evaluations on the validation split."""
    stop_at: Probability = 0.999
    """Validation accuracy at which a run stops early."""
    seed: Seed = 0
    """Seed of the weights and of the order of the examples; the task has its own seed."""
    code: str = ""
    """Digest of the plugin files that define layers or the task; empty if there are none."""
