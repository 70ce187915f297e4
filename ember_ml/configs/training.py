"""The config of a trainer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Component, Flag, Positive, Seed, Size


class TrainerConfig(Config):
    """How a model is trained."""

    optimizer: Annotated[Any, Component("optimizers")] = "adamw"
    learning_rate: Positive | None = None
    """In place of the optimizer's own."""
    loss: Annotated[Any, Component("losses", optional=True)] = None
    """Of the model's output and the target; without one the model gives the loss itself."""
    metrics: tuple[Annotated[Any, Component("metrics")], ...] = ()
    """Computed in evaluation."""
    schedule: Annotated[Any, Component("schedules", optional=True)] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """In which the model computes; its parameters stay float32."""
    accumulate: Size = 1
    """Batches whose gradients make one step."""
    clip_norm: Positive | None = None
    """The greatest norm of all gradients together."""
    clip_value: Positive | None = None
    """The greatest absolute value in a gradient."""
    ema: Below1 | None = None
    """The decay of a running mean of the weights, with which to evaluate."""
    compile: Flag | None = None
    """Whether to compile the gradients; if not said, where it pays at once."""
    seed: Seed | None = None
    """Set before the first step."""
