"""Schedules one after another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import Component, ComponentLike, Size
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, get

ScheduleField = Annotated[ComponentLike, Component("schedules")]


@register("schedules/chained")
class Chained(Schedule):
    """Schedules one after another, each counting its own steps; the last one continues.

    A part without `total_steps` has the length of its steps.

    Args:
        parts: (schedule, steps) pairs; a schedule is a name, a config or an object.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Chained([(schedules.Warmup(2), 2), (schedules.Linear(4), 4)])
        >>> [schedule(step) for step in range(5)]
        [0.0, 0.5, 1.0, 0.75, 0.5]
    """

    def __init__(
        self, parts: Annotated[tuple[tuple[ScheduleField, Size], ...], Field(min_length=1)]
    ) -> None:
        self.parts = [(get(schedule), steps) for schedule, steps in parts]
        for schedule, steps in self.parts:
            if isinstance(schedule, Schedule) and schedule.needs_length():
                schedule.set_span(0, steps)

    def set_span(self, start: int, end: int | None) -> None:
        """Check that the last schedule is not too short for the steps after the others."""
        *before, (last, steps) = self.parts
        begin = sum(count for _, count in before)
        if end is not None and end > begin and isinstance(last, Schedule):
            last.set_span(0, steps if last.needs_length() else end - begin)

    def factor_at(self, step: int) -> float:
        """Return the factor of the current schedule."""
        *before, (last, _) = self.parts
        for schedule, steps in before:
            if step < steps:
                return float(schedule(step))
            step -= steps
        return float(last(step))

    def observe(self, value: float) -> None:
        """Pass a validation loss to all schedules."""
        for schedule, _ in self.parts:
            if isinstance(schedule, Schedule):
                schedule.observe(value)

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedules."""
        return {
            "parts": [
                schedule.state_dict() if isinstance(schedule, Schedule) else {}
                for schedule, _ in self.parts
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state that `state_dict` returned."""
        saved = state["parts"]
        if len(saved) != len(self.parts):
            raise ArgumentError(
                f"Chained: there are {len(self.parts)} schedules, the state has {len(saved)}"
            )
        for (schedule, _), part in zip(self.parts, saved, strict=True):
            if isinstance(schedule, Schedule):
                schedule.load_state_dict(part)
        return self
