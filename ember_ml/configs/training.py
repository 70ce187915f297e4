"""The config of `Trainer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Component, Flag, Positive, Real, Seed, Size


class OutputComponents(Component):
    """Annotation of components of one output, or of several outputs by key or position.

    Args:
        kind: The kind of the components.
        several: Whether an output has several components.
    """

    def __init__(self, kind: str, *, several: bool = False) -> None:
        super().__init__(kind, optional=not several)
        self.several = several

    def _checked(self, value: Any) -> Any:
        if isinstance(value, Mapping) and "type" not in value:
            return {str(name): self._of_output(part) for name, part in value.items()}
        if isinstance(value, (list, tuple)) and not self.several:
            return {str(at): self._of_output(part) for at, part in enumerate(value)}
        return value if value is None and not self.several else self._of_output(value)

    def _of_output(self, value: Any) -> Any:
        if not self.several:
            return super()._checked(value)
        given = value if isinstance(value, (list, tuple)) else (value,)
        return tuple([super(OutputComponents, self)._checked(each) for each in given])


def check_remat(value: Any) -> Any:
    """Return a choice of modules to rematerialize; patterns as a tuple.

    Args:
        value: None, "blocks", "mixers", a pattern, several patterns, or a function.
    """
    if isinstance(value, (list, tuple)) and value and all(isinstance(x, str) for x in value):
        return tuple(value)
    if value is None or isinstance(value, str) or callable(value):
        return value
    raise ValueError(
        "must be 'blocks', 'mixers', patterns of module names, or a function of (name, module)"
    )


class TrainerConfig(Config):
    """Options of a training run."""

    optimizer: Annotated[Any, Component("optimizers")] = "adamw"
    learning_rate: Positive | None = None
    """Learning rate. Default: the optimizer's."""
    loss: Annotated[Any, OutputComponents("losses")] = None
    """Loss of the model's output and the target, or of each output by key or position. Default:
    the model returns the loss."""
    loss_weights: dict[str, Real] = Field(default_factory=dict)
    """Factor on the loss of each output. Default: 1."""
    metrics: Annotated[Any, OutputComponents("metrics", several=True)] = ()
    """Metrics computed during evaluation."""
    train_metrics: Flag = False
    """Whether to compute the metrics on the training batches too."""
    schedule: Annotated[Any, Component("schedules", optional=True)] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Dtype of the computation; parameters stay float32."""
    accumulate: Size = 1
    """Number of batches of a step, which equals a step on one batch of all their examples."""
    remat: Annotated[
        Any,
        PlainValidator(check_remat),
        WithJsonSchema({"type": ["string", "array", "null"], "items": {"type": "string"}}),
    ] = None
    """Modules that are computed again in the backward pass: "blocks", "mixers", or patterns of
    module names. Default: none."""
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
    strategy: Annotated[Any, Component("strategies", optional=True)] = None
    """How several processes train together. Default: one process."""
    seed: Seed | None = None
    """Seed set before the first step."""
