"""Pruning: trials that look bad end early."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Literal

from ember_ml.configs.fields import Count, Size
from ember_ml.registry import register
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.trial import Trial

Mode = Literal["min", "max"]


class Pruner(ABC):
    """Decides after each report whether a trial ends.

    A pruner sees the reports of all processes in the order of the history file, so that every
    process comes to the same decisions.
    """

    mode: Mode = "max"
    """Whether lower or higher reports are better; set by the tuner."""

    @abstractmethod
    def observe(self, trial: Trial, step: int, value: float) -> bool:
        """Take a report into account, and return whether the trial is to stop.

        Args:
            trial: The trial.
            step: Number of training steps, or epochs, so far.
            value: Reported value.
        """

    @abstractmethod
    def forget(self, trial: Trial) -> None:
        """Discard the reports of a trial that starts again.

        Args:
            trial: The trial.
        """


@register("pruners/asha")
class ASHA(Pruner):
    """Asynchronous successive halving.

    Rung r is at `min_steps * reduction_factor ** (r + min_rate)` steps. A trial that reaches a rung
    goes on if its value is among the best 1/`reduction_factor` of the values that trials of the
    same task have had at this rung so far. The first `reduction_factor - 1` trials go on only if
    they are the best so far. A NaN value at a rung ends the trial.

    Args:
        min_steps: Number of steps, in the unit of the reports, at the first rung.
        reduction_factor: Inverse of the fraction of trials that go on at a rung. At least 2.
        min_rate: Number of rungs that are left out at the beginning.
        bootstrap_count: Number of trials that a rung needs before any trial goes on from it.

    Reference: Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020.

    Example:
        >>> pruner = ASHA(min_steps=1, reduction_factor=2)
        >>> [pruner.observe(Trial(at, {}), 1, value) for at, value in enumerate([0.5, 0.4, 0.6])]
        [False, True, False]
    """

    def __init__(
        self,
        min_steps: Size = 1,
        reduction_factor: Size = 4,
        min_rate: Count = 0,
        bootstrap_count: Count = 0,
    ) -> None:
        if reduction_factor < 2:
            raise TuningError(f"ASHA: reduction_factor must be at least 2, not {reduction_factor}")
        self.min_steps = min_steps
        self.reduction_factor = reduction_factor
        self.min_rate = min_rate
        self.bootstrap_count = bootstrap_count
        self._rungs: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
        self._reached: dict[int, int] = defaultdict(int)

    def rung_steps(self, rung: int) -> int:
        """Return the number of steps at a rung.

        Args:
            rung: Number of the rung, from 0.
        """
        return self.min_steps * self.reduction_factor ** (self.min_rate + rung)

    def observe(self, trial: Trial, step: int, value: float) -> bool:
        """Take a report into account, and return whether the trial is to stop."""
        while step >= self.rung_steps(rung := self._reached[trial.id]):
            if math.isnan(value):
                return True
            values = self._rungs[trial.task, rung]
            values[trial.id] = value
            self._reached[trial.id] += 1
            if len(values) <= self.bootstrap_count or not self._goes_on(value, [*values.values()]):
                return True
        return False

    def _goes_on(self, value: float, values: list[float]) -> bool:
        """Return whether a value is among the best of a rung."""
        count = max(1, len(values) // self.reduction_factor)
        if self.mode == "max":
            return value >= sorted(values)[-count]
        return value <= sorted(values)[count - 1]

    def forget(self, trial: Trial) -> None:
        """Discard the reports of a trial that starts again."""
        self._reached.pop(trial.id, None)
        for values in self._rungs.values():
            values.pop(trial.id, None)
