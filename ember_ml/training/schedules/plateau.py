"""Reduction of the learning rate on a plateau."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from ember_ml.configs.fields import Count, NonNegative
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule


@register("schedules/plateau")
class Plateau(Schedule):
    """Reduces the learning rate when the observed value stops improving.

    Args:
        factor: Factor on the learning rate at each reduction.
        patience: Number of epochs without improvement before a reduction.
        mode: "min" if lower values are better, "max" if higher values are.
        threshold: Minimum improvement.
        threshold_mode: "relative" to the best value, or "absolute".
        cooldown: Number of epochs after a reduction that are not counted.
        least_factor: Minimum of the factor.

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
        factor: Annotated[float, Field(gt=0, lt=1)] = 0.1,
        patience: Count = 10,
        mode: Literal["min", "max"] = "min",
        threshold: NonNegative = 1e-4,
        threshold_mode: Literal["relative", "absolute"] = "relative",
        cooldown: Count = 0,
        least_factor: NonNegative = 0.0,
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
        """Return the current factor, which does not depend on the step."""
        return self._factor

    def observe(self, value: float) -> None:
        """Receive a validation loss, or another value, after an epoch."""
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
        if self._best is None or math.isnan(self._best):
            return True
        if math.isinf(self._best):  # relative thresholds need a finite value
            return value < self._best if self.mode == "min" else value > self._best
        scale = abs(self._best) if self.threshold_mode == "relative" else 1.0
        if self.mode == "min":
            return value < self._best - self.threshold * scale
        return value > self._best + self.threshold * scale

    def state_dict(self) -> dict[str, Any]:
        """Return the factor, the best value and the counters."""
        return {
            "factor": self._factor,
            "best": self._best,
            "bad": self._bad,
            "resting": self._resting,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state that `state_dict` returned."""
        self._factor = float(state["factor"])
        self._best = None if state["best"] is None else float(state["best"])
        self._bad, self._resting = int(state["bad"]), int(state["resting"])
        return self
