"""Schedules that follow the cosine."""

from __future__ import annotations

import math

from ember_ml.configs import schedules as configs
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, line


def wave(start: float, end: float, share: float) -> float:
    """A point on half a wave of the cosine between two values."""
    return end + (start - end) * (1.0 + math.cos(math.pi * share)) / 2.0


@register("schedules/cosine", config=configs.CosineConfig)
class Cosine(Schedule):
    """A line up over the warm-up, then half a wave of the cosine down to the final factor.

    Args:
        total_steps: with the warm-up; afterwards it stays at the final factor.
        warmup_steps: how long it rises.
        final_factor: where it ends.
        start_factor: where the warm-up begins.
        restart_every: begin the wave again every so many steps, up to `total_steps`.
        restart_growth: how much longer each wave is than the one before.

    Reference: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """

    def __init__(
        self,
        total_steps: int,
        warmup_steps: int = 0,
        final_factor: float = 0.0,
        start_factor: float = 0.0,
        restart_every: int | None = None,
        restart_growth: int = 1,
    ) -> None:
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.final_factor = final_factor
        self.start_factor = start_factor
        self.restart_every = restart_every
        self.restart_growth = restart_growth

    def factor_at(self, step: int) -> float:
        """The point on the line or the wave."""
        if step < self.warmup_steps:
            return line(self.start_factor, 1.0, step / self.warmup_steps)
        if step >= self.total_steps:
            return self.final_factor
        return wave(1.0, self.final_factor, self._share(step - self.warmup_steps))

    def _share(self, done: int) -> float:
        """How much of the present wave is over."""
        if self.restart_every is None:
            return done / (self.total_steps - self.warmup_steps)
        length = self.restart_every
        if self.restart_growth == 1:
            return done % length / length
        while done >= length:
            done, length = done - length, length * self.restart_growth
        return done / length


@register("schedules/one_cycle", config=configs.OneCycleConfig)
class OneCycle(Schedule):
    """Up from 1 / start_divisor to 1, and down to a final_divisor-th of the start.

    Args:
        total_steps: of the whole cycle; afterwards it stays at its end.
        rising_share: what share of the steps it rises.
        start_divisor: the first factor is one over it.
        final_divisor: the last factor is the first over it.
        shape: "cosine" or "linear".
        three_phases: go down as long as up, to the first factor, and then to the last.

    Reference: Smith and Topin, "Super-Convergence: Very Fast Training of Neural Networks Using
    Large Learning Rates", 2018.
    """

    def __init__(
        self,
        total_steps: int,
        rising_share: float = 0.3,
        start_divisor: float = 25.0,
        final_divisor: float = 1e4,
        shape: str = "cosine",
        three_phases: bool = False,
    ) -> None:
        first, last, rise = 1.0 / start_divisor, 1.0 / start_divisor / final_divisor, rising_share
        self.between = wave if shape == "cosine" else line
        end = float(total_steps - 1)
        turns = [(rise * total_steps - 1.0, first, 1.0)]
        if three_phases:
            turns.append((2.0 * rise * total_steps - 2.0, 1.0, first))
        turns.append((end, turns[-1][2], last))
        self.turns = turns

    def factor_at(self, step: int) -> float:
        """The point in the present phase."""
        begin = 0.0
        for end, low, high in self.turns:
            if step <= end or end == self.turns[-1][0]:
                return self.between(low, high, _share(step - begin, end - begin))
            begin = end
        raise AssertionError("the last phase has no end")


def _share(done: float, length: float) -> float:
    return min(done / length, 1.0) if length > 0 else 1.0
