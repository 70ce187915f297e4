"""The base class of callbacks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, SupportsFloat

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.data.errors import check_integer
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Callback:
    """Base class of callbacks, whose methods a trainer calls. Subclasses override some of them.

    `record` has the values of a step or epoch: step, epoch, loss, and after an evaluation its
    "val_..." values. A callback may add values to it, and may set `trainer.should_stop`.

    Attributes:
        saves: Whether the callback saves the trainer. It then runs after all others, so that the
            checkpoint has the state of all callbacks after the step or epoch.
        main_only: Whether the callback runs in the main process only, if several train together.
    """

    saves: ClassVar[bool] = False
    main_only: ClassVar[bool] = False

    def monitored(self) -> str | None:
        """Return the name of the value in the records of epochs that the callback needs, if any."""
        return None

    def on_fit_start(self, trainer: Trainer) -> None:
        """Run before the first step."""

    def on_gradients(self, trainer: Trainer, gradients: Mapping[str, Tensor]) -> None:
        """Run before an update, with its gradients by parameter name, before clipping.

        Their norm is `record["grad_norm"]` in `on_step_end`. A step is not compiled as a whole if a
        callback defines this method.
        """

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Run after a step."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Run after an epoch and its evaluation."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """Run after the last step, also if an error ended training."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to save in checkpoints, as plain data."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""


class Best:
    """The best value of a monitored quantity.

    Args:
        monitor: Name of the value in a record.
        mode: "min" if lower is better, "max" if higher is better.
        min_delta: Minimum improvement.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        if not isinstance(monitor, str):
            raise ArgumentTypeError(
                f"monitor must be the name of a value, such as 'val_loss', not {monitor!r:.60}"
            )
        if not (isinstance(mode, str) and mode in ("min", "max")):
            raise ArgumentError(f"mode must be 'min' or 'max', not {mode!r:.60}")
        if not (isinstance(min_delta, SupportsFloat) and _is_finite(min_delta)):
            raise ArgumentError(f"min_delta must be a finite number, not {min_delta!r:.60}")
        self.monitor = monitor
        self.value: float | None = None
        self._sign = 1.0 if mode == "min" else -1.0
        self._min_delta = float(min_delta)

    def is_validated(self, record: dict[str, float]) -> bool:
        """Return whether the record of a step has the monitored value from an evaluation."""
        return self.monitor.startswith("val_") and self.monitor in record

    def improves(self, record: dict[str, float]) -> bool:
        """Return whether a record is the best so far, and remember its value; NaN never is."""
        if self.monitor not in record:
            raise ArgumentError(
                f"nothing is named {self.monitor!r} at the end of an epoch"
                f"{close_matches(self.monitor, record)}; there are {', '.join(sorted(record))}"
            )
        value = record[self.monitor]
        best = self.value
        better = not math.isnan(value) and (
            best is None
            or math.isnan(best)
            or self._sign * value < self._sign * best - self._min_delta
        )
        if better:
            self.value = value
        return better


def callback_states(callbacks: Sequence[Callback]) -> list[list[Any]]:
    """Return the class name and the state of each callback, as a checkpoint stores them.

    Args:
        callbacks: Callbacks of a trainer.

    Raises:
        ArgumentTypeError: If a state could not be read back from a checkpoint.
    """
    return [[type(each).__name__, _plain_state(each)] for each in callbacks]


def _plain_state(callback: Callback) -> dict[str, Any]:
    state = callback.state_dict()
    try:
        if isinstance(state, dict):
            json.dumps(state)
            return state
    except (TypeError, ValueError, RecursionError):
        pass
    raise ArgumentTypeError(
        f"{type(callback).__name__}.state_dict must return a dict of numbers, text, lists and "
        f"dicts, which a checkpoint can store, not {state!r:.60}"
    )


def check_interval(callback: str, every_steps: int | None) -> int | None:
    """Return the number of steps between two actions of a callback; None if it has none.

    Args:
        callback: Name of the callback in the error.
        every_steps: Number to check.
    """
    if every_steps is None:
        return None
    return check_integer(callback, "every_steps", every_steps, least=1)


def _is_finite(value: SupportsFloat) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, ValueError):  # an array
        return False
