"""Losses and metrics of models with several outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import build
from ember_ml.training import metrics
from ember_ml.training.losses.base import calling_model
from ember_ml.training.metrics import Metric


class OutputLosses:
    """Weighted sum of the losses of several outputs.

    Args:
        losses: Output -> loss. The outputs and targets are dicts with these keys, or tuples with
            these positions ("0", "1").
        weights: Output -> factor on its loss. Default: 1.
    """

    def __init__(self, losses: Mapping[str, ComponentLike], weights: Mapping[str, float]) -> None:
        unknown = [name for name in weights if name not in losses]
        if unknown:
            raise ArgumentError(
                f"Trainer: loss_weights has {', '.join(map(repr, unknown))}, but the losses are of "
                f"{', '.join(map(repr, losses))}"
            )
        self.losses = {name: build("losses", loss) for name, loss in losses.items()}
        self.weights = {name: float(weights.get(name, 1.0)) for name in losses}

    def __call__(self, outputs: Any, targets: Any, sample_weight: Any = None) -> Tensor:
        """Return the weighted sum."""
        parts = self.parts(outputs, targets, sample_weight)
        first, *others = [
            part if self.weights[name] == 1.0 else part * self.weights[name]
            for name, part in parts.items()
        ]
        for other in others:
            first = first + other
        return first

    @contextlib.contextmanager
    def calling_model(self) -> Iterator[None]:
        """Enter the contexts of all losses, in which the model is called."""
        with contextlib.ExitStack() as stack:
            for loss in self.losses.values():
                stack.enter_context(calling_model(loss))
            yield

    def parts(self, outputs: Any, targets: Any, sample_weight: Any = None) -> dict[str, Tensor]:
        """Return the loss of each output, without its factor."""
        computed = {}
        for name, loss in self.losses.items():
            weight = _part_of(sample_weight, name)
            options = {} if weight is None else {"sample_weight": weight}
            output, target = pick(outputs, name, "outputs"), pick(targets, name, "targets")
            computed[name] = loss(output, target, **options)
        return computed


class OutputMetric(Metric[Any]):
    """Metric of one of several outputs.

    Args:
        output: Key or position of the output.
        metric: The metric.
    """

    def __init__(self, output: str, metric: Metric[Any]) -> None:
        self.metric = metric
        self.output = output
        super().__init__(f"{output}_{metric.name}")

    def update(self, prediction: Any, target: Any, mask: TensorLike | None = None) -> None:
        """Add a batch of all outputs."""
        output = pick(prediction, self.output, "outputs")
        wanted = pick(target, self.output, "targets")
        self.metric.update(output, wanted, _part_of(mask, self.output))

    def compute(self) -> Any:
        """Return the metric of all batches since the last reset."""
        return self.metric.compute()

    def reset(self) -> None:
        """Discard all batches."""
        self.metric.reset()

    def state_dict(self) -> dict[str, object]:
        """Return the counters as plain data for JSON."""
        return {**self.metric.state_dict(), "name": self.name}

    def load_state_dict(self, state: Mapping[str, object]) -> Self:
        """Replace the counters by saved ones, and return this metric."""
        self.metric.load_state_dict(state)
        return self


def pick(values: Any, name: str, what: str) -> Any:
    """Return one of several outputs or targets.

    Args:
        values: All outputs or targets.
        name: Key or position.
        what: Description of the values for the error message.
    """
    if isinstance(values, Mapping) and name in values:
        return values[name]
    if isinstance(values, (tuple, list)) and name.isdecimal() and int(name) < len(values):
        return values[int(name)]
    if isinstance(values, Mapping):
        actual = f"have {', '.join(map(repr, values))}"
    else:
        count = f" of {len(values)}" if isinstance(values, (tuple, list)) else ""
        actual = f"are a {type(values).__name__}{count}"
    raise ArgumentError(f"Trainer: there is a loss or metric of {name!r}, but the {what} {actual}")


def _part_of(weight: Any, name: str) -> Any:
    """Return the weights of an output: its own, or those of all."""
    return pick(weight, name, "weights") if isinstance(weight, (Mapping, tuple, list)) else weight


def metrics_of(
    given: Sequence[ComponentLike | Metric] | Mapping[str, Sequence[ComponentLike | Metric]],
) -> list[Metric]:
    """Return the metrics, whose names must differ.

    Args:
        given: Metrics of the only output, or of each output by key or position.
    """
    if isinstance(given, Mapping):
        built: list[Metric] = [
            OutputMetric(output, metrics.get(each)) for output in given for each in given[output]
        ]
    else:
        built = [metrics.get(each) for each in given]
    names = [metric.name for metric in built]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"Trainer: two metrics are named {name!r}; wrap functions as "
                "FunctionMetric(function, name=...)"
            )
    return built
