"""The config of `Trainer`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Component, Flag, Positive, Seed, Size


class TrainerConfig(Config):
    """Options of a training run."""

    optimizer: Annotated[Any, Component("optimizers")] = "adamw"
    learning_rate: Positive | None = None
    """Learning rate. Default: the optimizer's."""
    loss: Annotated[Any, Component("losses", optional=True)] = None
    """Loss of the model's output and the target. Default: the model returns the loss."""
    metrics: tuple[Annotated[Any, Component("metrics")], ...] = ()
    """Metrics computed during evaluation."""
    schedule: Annotated[Any, Component("schedules", optional=True)] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Dtype of the computation; parameters stay float32."""
    accumulate: Size = 1
    """Number of batches of a step, which equals a step on one batch of all their examples."""
    clip_norm: Positive | None = None
    """Maximum norm of all gradients together."""
    clip_value: Positive | None = None
    """Maximum absolute value of each element of a gradient."""
    ema: Below1 | None = None
    """Decay rate of an exponential moving average of the weights, used for evaluation."""
    on_nonfinite: Literal["raise", "skip", "rollback"] = "raise"
    """What to do with a batch whose loss or gradient is NaN or infinite."""
    compile: Flag | None = None
    """Whether to compile the step at once. Default: later, and where compilation is cheap."""
    seed: Seed | None = None
    """Seed set before the first step."""
