"""A schedule that goes by what is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from ember_ml.configs.schedules import PlateauConfig
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule


@register("schedules/plateau", config=PlateauConfig)
class Plateau(Schedule):
    """A drop when what `observe` is told has not got better for more than `patience` times.

    Args:
        factor: what is left at each drop.
        patience: how many times without anything better are borne.
        mode: whether less is better ("min") or more ("max").
        threshold: how much better it must be to count.
        threshold_mode: whether the threshold is a share of the best or an amount.
        cooldown: how many times after a drop are not counted.
        least_factor: it does not go below this.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Plateau(factor=0.5, patience=1)
        >>> for loss in [1.0, 1.0, 1.0]:
        ...     schedule.observe(loss)
        >>> schedule(0)
        0.5
    """

    def __init__(
        self,
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "min",
        threshold: float = 1e-4,
        threshold_mode: str = "relative",
        cooldown: int = 0,
        least_factor: float = 0.0,
    ) -> None:
        self.drop = factor
        self.patience = patience
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.least_factor = least_factor
        self._factor = 1.0
        self._best: float | None = None
        self._bad = 0
        self._resting = 0

    def factor_at(self, step: int) -> float:
        """The factor now, whatever the step."""
        return self._factor

    def observe(self, value: float) -> None:
        """Take note of a measured value."""
        value = float(value)
        if self._is_better(value):
            self._best, self._bad = value, 0
        else:
            self._bad += 1
        if self._resting > 0:
            self._resting, self._bad = self._resting - 1, 0
        if self._bad > self.patience:
            self._factor = max(self._factor * self.drop, self.least_factor)
            self._resting, self._bad = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self._best is None:
            return True
        scale = abs(self._best) if self.threshold_mode == "relative" else 1.0
        if self.mode == "min":
            return value < self._best - self.threshold * scale
        return value > self._best + self.threshold * scale

    def state_dict(self) -> dict[str, Any]:
        """The factor, the best value and the counters."""
        return {
            "factor": self._factor,
            "best": self._best,
            "bad": self._bad,
            "resting": self._resting,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave."""
        self._factor = float(state["factor"])
        self._best = None if state["best"] is None else float(state["best"])
        self._bad, self._resting = int(state["bad"]), int(state["resting"])
        return self
