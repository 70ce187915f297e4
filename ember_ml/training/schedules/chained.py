"""Schedules one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.schedules import ChainedConfig
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, get


@register("schedules/chained", config=ChainedConfig)
class Chained(Schedule):
    """Each schedule for its number of steps, counted from its own beginning; the last goes on.

    Args:
        parts: (schedule, steps) pairs; a schedule is given by name, config or as an object.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Chained([(schedules.Warmup(2), 2), (schedules.Linear(4), 4)])
        >>> [schedule(step) for step in range(5)]
        [0.0, 0.5, 1.0, 0.75, 0.5]
    """

    def __init__(self, parts: Sequence[tuple[Any, int]]) -> None:
        self.parts = [(get(schedule), steps) for schedule, steps in parts]

    def factor_at(self, step: int) -> float:
        """The factor of the schedule whose turn it is."""
        *before, (last, _) = self.parts
        for schedule, steps in before:
            if step < steps:
                return float(schedule(step))
            step -= steps
        return float(last(step))

    def observe(self, value: float) -> None:
        """Tell all of them."""
        for schedule, _ in self.parts:
            if isinstance(schedule, Schedule):
                schedule.observe(value)

    def state_dict(self) -> dict[str, Any]:
        """What they remember."""
        return {
            "parts": [
                schedule.state_dict() if isinstance(schedule, Schedule) else {}
                for schedule, _ in self.parts
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave."""
        saved = state["parts"]
        if len(saved) != len(self.parts):
            raise ArgumentError(
                f"Chained: there are {len(self.parts)} schedules, the state is of {len(saved)}"
            )
        for (schedule, _), part in zip(self.parts, saved, strict=True):
            if isinstance(schedule, Schedule):
                schedule.load_state_dict(part)
        return self
