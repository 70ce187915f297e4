"""What a metric is."""

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
    """A number about predictions and targets that come in batches.

    The counters are tensors on the backend of the predictions, and nothing is read back before
    `compute`. Targets and masks on another backend are moved there.

    Subclasses write `measure`, which gives the counters of a batch, and `result`, which makes the
    number of them; and `combine`, if the counters of two batches do not just add up.

    Args:
        name: what stands in logs.
    """

    config: Any = None
    _state: State
    _updates: int

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The counters of a batch."""
        raise NotImplementedError

    def result(self, values: dict[str, Any]) -> Any:
        """The metric, from the counters as Python numbers and lists."""
        raise NotImplementedError

    def combine(self, first: State, second: State) -> State:
        """The counters of two sets of examples, from those of each."""
        return states.add(first, second)

    def empty(self) -> Any:
        """The metric of nothing."""
        return math.nan

    def update(
        self, prediction: TensorLike, target: TensorLike, mask: TensorLike | None = None
    ) -> None:
        """Take a batch into account.

        Args:
            prediction: what a model gives.
            target: what it should give.
            mask: which targets count; of their shape, or of the shape of their leading axes.
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
        if self._updates % states.SETTLE_EVERY == 0:
            states.settle(batch)

    def compute(self) -> Any:
        """The metric of all batches since the last reset; NaN, or [], if there were none."""
        state = self._gathered()
        return self.result(states.values(state)) if state else self.empty()

    def _gathered(self) -> State:
        """The counters of all batches."""
        return self._state

    def reset(self) -> None:
        """Forget all batches."""
        self._state = {}
        self._updates = 0

    def merge(self, other: Metric) -> Self:
        """Take over what another metric of the same kind has seen."""
        if type(other) is not type(self) or other.config != self.config:
            raise ArgumentTypeError(f"{self!r} merges with its like, not with {other!r:.60}")
        found = other._gathered()
        if found:
            self._take(found)
        return self

    def state_dict(self) -> dict[str, Any]:
        """The counters, as plain data."""
        return {"name": self.name, "counters": states.to_plain(self._gathered())}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave."""
        if not isinstance(state, Mapping) or "counters" not in state:
            raise ArgumentError(f"{self!r} loads what state_dict gave, not {state!r:.60}")
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
    """The metric that a name, a config, {"type": ...} or a metric itself means.

    Example:
        >>> ember_ml.training.metrics.get({"type": "f1", "average": "micro"}).name
        'f1_micro'
    """
    return build("metrics", metric)
