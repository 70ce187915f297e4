"""Base class of the metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.registry import build
from ember_ml.training.metrics import state as states
from ember_ml.training.metrics.state import State


class Metric:
    """Metric of predictions and targets, accumulated over batches.

    The counters are tensors on the backend of the predictions. They are read from the device in
    `compute` only. Targets and masks on another backend are moved there.

    Subclasses define `measure`, which returns the counters of a batch, and `result`, which computes
    the metric from them. They also define `combine` if counters of two batches are not added.

    Args:
        name: Name of the metric in logs.
    """

    config: Any = None
    _state: State
    _updates: int

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the counters of a batch."""
        raise NotImplementedError

    def result(self, values: dict[str, Any]) -> Any:
        """Return the metric, computed from the counters as Python numbers and lists."""
        raise NotImplementedError

    def combine(self, first: State, second: State) -> State:
        """Return the counters of the union of two sets of examples."""
        return states.add(first, second)

    def empty(self) -> Any:
        """Return the metric before the first batch."""
        return math.nan

    def update(
        self, prediction: TensorLike, target: TensorLike, mask: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            prediction: Predictions of a model.
            target: Expected values or classes.
            mask: True for targets that count; has their shape, or that of their leading axes.
        """
        x = ops.stop_gradient(convert_to_tensor(prediction))
        y = convert_to_tensor(target, backend=x.backend)
        counts = None if mask is None else convert_to_tensor(mask, "bool", backend=x.backend)
        self._take(self.measure(x, y, counts))

    def _take(self, batch: State) -> None:
        if self._state:
            states.check_alike(type(self).__name__, self._state, batch)
            backend = next(iter(batch.values())).backend
            batch = self.combine(states.moved(self._state, backend), batch)
        self._state = batch
        self._updates += 1
        if self._updates % states.FLUSH_EVERY == 0:
            states.flush(batch)

    def compute(self) -> Any:
        """Return the metric of all batches since the last reset; NaN or [] without batches."""
        state = self._gathered()
        return self.result(states.values(state)) if state else self.empty()

    def _gathered(self) -> State:
        """Return the counters of all batches."""
        return self._state

    def reset(self) -> None:
        """Discard all batches."""
        self._state = {}
        self._updates = 0

    def merge(self, other: Metric) -> Self:
        """Add the batches of another metric with the same class and config."""
        if type(other) is not type(self) or other.config != self.config:
            raise ArgumentTypeError(
                f"merge: expected a metric of the same class and config as {self!r}, "
                f"not {other!r:.60}"
            )
        state = other._gathered()
        if state:
            self._take(state)
        return self

    def state_dict(self) -> dict[str, Any]:
        """Return the counters as plain data."""
        return {"name": self.name, "counters": states.to_plain(self._gathered())}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Load the counters that `state_dict` returned."""
        if not isinstance(state, Mapping) or "counters" not in state:
            raise ArgumentError(
                f"{self!r}.load_state_dict: expected the result of state_dict, not {state!r:.60}"
            )
        self.reset()
        loaded = states.from_plain(type(self).__name__, state["counters"])
        if loaded:
            self._take(loaded)
        return self

    def __repr__(self) -> str:
        fields = type(self.config).model_fields if self.config is not None else {}
        given = {name: getattr(self.config, name) for name in fields}
        inside = [f"{name}={x!r}" for name, x in given.items() if x != fields[name].default]
        return f"{type(self).__name__}({', '.join(inside)})"


def get(metric: Any) -> Any:
    """Return the metric for a name, a config, {"type": ...} or a metric object.

    Example:
        >>> ember_ml.training.metrics.get({"type": "f1", "average": "micro"}).name
        'f1_micro'
    """
    return build("metrics", metric)
