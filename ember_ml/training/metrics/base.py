"""Base class of metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.registry import build
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics import state as states
from ember_ml.training.metrics.state import State, Values

if TYPE_CHECKING:
    from ember_ml.configs import Config

R = TypeVar("R")
_BATCHES = ("measure", "update")
"""Methods that read a batch."""


class Metric(Generic[R]):
    """Base class of metrics that accumulate over batches of predictions and targets.

    The counters are tensors on the backend of the predictions and stay there until `compute`.
    Targets and masks on another backend are moved.

    Subclasses define `measure`, which returns the counters of a batch, and `result`, which
    computes the metric from them. They override `combine` if counters do not simply add up.

    Args:
        name: Name of the metric in logs.
    """

    config: Config | None = None
    ignore_index: int = -100
    """Target value that is ignored if `skips_ignored` is True."""
    skips_ignored: ClassVar[bool] = False
    """Whether positions whose target is `ignore_index` have no effect on the metric. A class
    that overrides `measure` or `update`, itself or by a mixin, declares it again."""
    _state: State
    _updates: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__mro__:
            if "skips_ignored" in vars(base):
                return
            if not vars(base).keys().isdisjoint(_BATCHES):
                cls.skips_ignored = False
                return

    def __init__(self, name: str) -> None:
        self.name = name
        self.reset()

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the counters of a batch.

        Args:
            prediction: Predictions, without gradient.
            target: Targets, on the backend of the predictions.
            mask: True for targets that count; None if all do.
        """
        raise NotImplementedError

    def result(self, values: Values) -> R:
        """Return the metric.

        Args:
            values: Counters as Python numbers and nested lists.
        """
        raise NotImplementedError

    def combine(self, first: State, second: State) -> State:
        """Return the counters of two sets of examples together.

        Args:
            first: Counters of the first set.
            second: Counters of the second set.
        """
        return states.add(first, second)

    def empty(self) -> R:
        """Return the metric of zero batches: NaN unless a subclass overrides it."""
        return cast("R", math.nan)

    def update(
        self, prediction: TensorLike, target: TensorLike, mask: TensorLike | None = None
    ) -> None:
        """Add a batch.

        Args:
            prediction: Output of a model.
            target: Expected output.
            mask: True for targets that count. It has the shape of the targets or of their
                leading axes. Default: all count.
        """
        x = ops.stop_gradient(convert_to_tensor(prediction))
        y = convert_to_tensor(target, backend=x.backend)
        counts = None if mask is None else convert_to_tensor(mask, "bool", backend=x.backend)
        self._accumulate(self.measure(x, y, counts))

    def read_targets(self, target: Tensor) -> Tensor | None:
        """Return a mask of the targets that the metric reads; None if it may read all of them.

        Args:
            target: Expected output.
        """
        if not self.skips_ignored or not vars(self).keys().isdisjoint(_BATCHES):
            return None
        return inputs.as_classes(target) != self.ignore_index

    def _accumulate(self, batch: State) -> None:
        if self._state:
            states.check_shapes(type(self).__name__, self._state, batch)
            backend = next(iter(batch.values())).backend
            batch = self.combine(states.moved(self._state, backend), batch)
        self._state = batch
        self._updates += 1
        if self._updates % states.FLUSH_EVERY == 0:
            states.flush(batch)

    def compute(self) -> R:
        """Return the metric of all batches since the last reset; NaN or [] without any."""
        state = self._total()
        return self.result(states.values(state)) if state else self.empty()

    def _total(self) -> State:
        """Return the counters of all batches."""
        return self._state

    def reset(self) -> None:
        """Discard all batches."""
        self._state = {}
        self._updates = 0

    def merge(self, other: Metric[R]) -> Self:
        """Add the batches of another metric, and return this one.

        Args:
            other: Metric of the same class and config.
        """
        if type(other) is not type(self) or other.config != self.config:
            raise ArgumentTypeError(
                f"merge: expected a metric of the same class and config as {self!r}, "
                f"not {other!r:.60}"
            )
        state = other._total()
        if state:
            self._accumulate(state)
        return self

    def state_dict(self) -> dict[str, object]:
        """Return the counters as plain data for JSON."""
        return {"name": self.name, "counters": states.to_plain(self._total())}

    def load_state_dict(self, state: Mapping[str, object]) -> Self:
        """Replace the counters by saved ones, and return this metric.

        Args:
            state: Result of `state_dict`.
        """
        if not isinstance(state, Mapping) or "counters" not in state:
            raise ArgumentError(
                f"{self!r}.load_state_dict: expected the result of state_dict, not {state!r:.60}"
            )
        self.reset()
        loaded = states.from_plain(type(self).__name__, state["counters"])
        if loaded:
            self._accumulate(loaded)
        return self

    def __repr__(self) -> str:
        fields = type(self.config).model_fields if self.config is not None else {}
        options = {name: getattr(self.config, name) for name in fields}
        inside = [f"{name}={x!r}" for name, x in options.items() if x != fields[name].default]
        return f"{type(self).__name__}({', '.join(inside)})"


def get(
    metric: str | Mapping[str, object] | Config | type[Metric] | Metric | Callable[..., object],
) -> Metric:
    """Return the metric of a name, a config or a dict {"type": ...}; a metric is returned as is.

    A function of (prediction, target) becomes a `FunctionMetric`.

    Args:
        metric: Metric in any of these forms.

    Example:
        >>> ember_ml.training.metrics.get({"type": "f1", "average": "micro"}).name
        'f1_micro'
    """
    built = build("metrics", metric)
    if isinstance(built, Metric):
        return built
    if not callable(built):
        raise ArgumentTypeError(
            "a metric must be a name, a config, a Metric or a function of (prediction, target), "
            f"not {built!r:.60}"
        )
    from ember_ml.training.metrics.function import FunctionMetric

    return FunctionMetric(built)
