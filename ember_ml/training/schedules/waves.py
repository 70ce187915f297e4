"""Cosine schedules."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.fields import Count, NonNegative, Positive, Probability, Size
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, line


def wave(start: float, end: float, share: float) -> float:
    """Return the cosine interpolation between two values."""
    return end + (start - end) * (1.0 + math.cos(math.pi * share)) / 2.0


@register("schedules/cosine")
class Cosine(Schedule):
    """Linear warmup, then cosine decay to the final factor.

    Args:
        total_steps: Number of steps including the warmup; the factor is constant afterwards.
            Default: the steps of `Trainer.fit`.
        warmup_steps: Number of steps of the warmup.
        final_factor: Last factor.
        start_factor: First factor of the warmup.
        restart_every: Number of steps of the first cycle, for warm restarts. Default: no restarts.
        restart_growth: Length of a cycle relative to the one before.

    Reference: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """

    def __init__(
        self,
        total_steps: Size | None = None,
        warmup_steps: Count = 0,
        final_factor: NonNegative = 0.0,
        start_factor: NonNegative = 0.0,
        restart_every: Size | None = None,
        restart_growth: Size = 1,
    ) -> None:
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.final_factor = final_factor
        self.start_factor = start_factor
        self.restart_every = restart_every
        self.restart_growth = restart_growth

    @staticmethod
    def check_config(config: Any) -> None:
        """Raise an error if the warmup is not shorter than the schedule."""
        if config.total_steps is not None and config.warmup_steps >= config.total_steps:
            raise ValueError("total_steps must be more than warmup_steps")

    def check_length(self, length: int) -> None:
        """Raise an error if the warmup is not shorter than the schedule."""
        if self.warmup_steps >= length:
            raise ArgumentError(
                f"Cosine: warmup_steps ({self.warmup_steps}) must be less than the {length} steps "
                "of fit"
            )

    def factor_at(self, step: int) -> float:
        """Return the factor of the warmup or of the decay."""
        if step < self.warmup_steps:
            return line(self.start_factor, 1.0, step / self.warmup_steps)
        if step >= self.length:
            return self.final_factor
        return wave(1.0, self.final_factor, self._share(step - self.warmup_steps))

    def _share(self, done: int) -> float:
        """Return the completed share of the current cycle."""
        if self.restart_every is None:
            return done / (self.length - self.warmup_steps)
        length = self.restart_every
        if self.restart_growth == 1:
            return done % length / length
        while done >= length:
            done, length = done - length, length * self.restart_growth
        return done / length


@register("schedules/one_cycle")
class OneCycle(Schedule):
    """One cycle: from 1 / start_divisor up to 1, then down to 1 / (start_divisor final_divisor).

    Args:
        total_steps: Number of steps of the cycle. Default: the steps of `Trainer.fit`, which may
            not be longer.
        rising_share: Share of the steps in which the factor rises.
        start_divisor: Inverse of the first factor.
        final_divisor: First factor divided by the last one.
        shape: Interpolation, "cosine" or "linear".
        three_phases: Whether to fall to the first factor as fast as it rose, and then to the last.

    Reference: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using
    Large Learning Rates", 2018.
    """

    def __init__(
        self,
        total_steps: Annotated[int, Field(strict=True, ge=2)] | None = None,
        rising_share: Probability = 0.3,
        start_divisor: Positive = 25.0,
        final_divisor: Positive = 1e4,
        shape: Literal["cosine", "linear"] = "cosine",
        three_phases: bool = False,
    ) -> None:
        self.total_steps = total_steps
        self.rising_share = rising_share
        self.first = 1.0 / start_divisor
        self.last = self.first / final_divisor
        self.between = wave if shape == "cosine" else line
        self.three_phases = three_phases

    def check_length(self, length: int) -> None:
        """Raise an error if the cycle has only one step."""
        if length < 2:
            raise ArgumentError("OneCycle: fit must have at least 2 steps")

    def _phases(self) -> list[tuple[float, float, float]]:
        """Return the last step, the first and the last factor of each phase."""
        total, rise = self.length, self.rising_share
        phases = [(rise * total - 1.0, self.first, 1.0)]
        if self.three_phases:
            phases.append((2.0 * rise * total - 2.0, 1.0, self.first))
        return [*phases, (total - 1.0, phases[-1][2], self.last)]

    def factor_at(self, step: int) -> float:
        """Return the factor in the current phase."""
        begin = 0.0
        phases = self._phases()
        for end, low, high in phases:
            if step <= end or end == phases[-1][0]:
                return self.between(low, high, _share(step - begin, end - begin))
            begin = end
        raise AssertionError("the last phase has no end")


def _share(done: float, length: float) -> float:
    return min(done / length, 1.0) if length > 0 else 1.0
