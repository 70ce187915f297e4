"""Configs of MAD: one training run, and what a sweep consists of."""

from __future__ import annotations

from typing import Annotated, Any

from ember_ml.configs.base import Config
from ember_ml.configs.blocks.base import Norm
from ember_ml.configs.fields import Component, NonNegative, Positive, Probability, Seed, Size
from ember_ml.configs.patterns import LayersField


class RunConfig(Config):
    """One model trained on one task."""

    architecture: str
    """What it is called in tables."""
    layers: LayersField
    task: Annotated[Any, Component("tasks")]
    hidden_size: Size = 128
    norm: Norm = "rms_norm"
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    batch_size: Size = 128
    steps: Size = 20000
    """The most steps; the learning rate falls over so many, as a cosine, to 1e-6."""
    evaluate_every: Size = 200
    """Steps between two looks at the validation split."""
    stop_at: Probability = 0.999
    """The accuracy on the validation split that ends a run early."""
    seed: Seed = 0
    """Of the weights and the order of the examples; the task has one of its own."""
    code: str = ""
    """A digest of the files of layers and tasks that are not of Ember ML."""
