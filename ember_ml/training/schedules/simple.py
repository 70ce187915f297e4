"""Schedules with a simple formula."""

from __future__ import annotations

import bisect
import math
from typing import Any

from ember_ml.configs.fields import NonNegative, Positive, Size
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, line


@register("schedules/constant")
class Constant(Schedule):
    """Constant factor, for a number of steps or forever; 1 afterwards.

    Args:
        factor: The factor.
        steps: Number of steps. Default: no limit.
    """

    def __init__(self, factor: NonNegative = 1.0, steps: Size | None = None) -> None:
        self.factor = factor
        self.steps = steps

    def factor_at(self, step: int) -> float:
        """Return the factor."""
        return self.factor if self.steps is None or step < self.steps else 1.0


@register("schedules/step")
class Step(Schedule):
    """Decay by a factor every `step_size` steps, or at each of the `milestones`.

    Args:
        step_size: Number of steps from one decay to the next.
        milestones: Steps at which the factor decays, instead of `step_size`.
        gamma: Factor of each decay.
    """

    def __init__(
        self,
        step_size: Size | None = None,
        milestones: tuple[Size, ...] = (),
        gamma: NonNegative = 0.1,
    ) -> None:
        self.step_size = step_size
        self.milestones = sorted(milestones)
        self.gamma = gamma

    @staticmethod
    def check_config(config: Any) -> None:
        """Raise an error unless exactly one of step_size and milestones is given."""
        if (config.step_size is None) == (not config.milestones):
            raise ValueError("pass either step_size or milestones")

    def factor_at(self, step: int) -> float:
        """Return gamma to the power of the number of decays so far."""
        if self.step_size is not None:
            return self.gamma ** (step // self.step_size)
        return self.gamma ** bisect.bisect_right(self.milestones, step)


@register("schedules/exponential")
class Exponential(Schedule):
    """Exponential decay: gamma to the power of step / decay_steps.

    Args:
        gamma: Factor after `decay_steps` steps.
        decay_steps: Number of steps of one decay.
    """

    def __init__(self, gamma: Positive = 0.99, decay_steps: Size = 1) -> None:
        self.gamma = gamma
        self.decay_steps = decay_steps

    def factor_at(self, step: int) -> float:
        """Return the power."""
        return self.gamma ** (step / self.decay_steps)


@register("schedules/linear")
class Linear(Schedule):
    """Linear change over `total_steps`; constant afterwards.

    Args:
        total_steps: Number of steps. Default: the steps of `Trainer.fit`.
        start_factor: First factor.
        final_factor: Last factor.
    """

    def __init__(
        self,
        total_steps: Size | None = None,
        start_factor: NonNegative = 1.0,
        final_factor: NonNegative = 0.0,
    ) -> None:
        self.total_steps = total_steps
        self.start_factor = start_factor
        self.final_factor = final_factor

    def factor_at(self, step: int) -> float:
        """Return the interpolated factor."""
        share = min(step, self.length) / self.length
        return line(self.start_factor, self.final_factor, share)


@register("schedules/warmup")
class Warmup(Schedule):
    """Linear warmup to 1; constant afterwards.

    Args:
        warmup_steps: Number of steps.
        start_factor: First factor.
    """

    def __init__(self, warmup_steps: Size, start_factor: NonNegative = 0.0) -> None:
        self.warmup_steps = warmup_steps
        self.start_factor = start_factor

    def factor_at(self, step: int) -> float:
        """Return the interpolated factor."""
        return line(self.start_factor, 1.0, min(step / self.warmup_steps, 1.0))


@register("schedules/polynomial")
class Polynomial(Schedule):
    """Polynomial decay: (1 - step / total_steps) to a power, from 1 to the final factor.

    Args:
        total_steps: Number of steps. Default: the steps of `Trainer.fit`.
        power: The power.
        final_factor: Last factor.
    """

    def __init__(
        self,
        total_steps: Size | None = None,
        power: Positive = 1.0,
        final_factor: NonNegative = 0.0,
    ) -> None:
        self.total_steps = total_steps
        self.power = power
        self.final_factor = final_factor

    def factor_at(self, step: int) -> float:
        """Return the power of the remaining share of steps."""
        left = 1.0 - min(step, self.length) / self.length
        return line(self.final_factor, 1.0, left**self.power)


@register("schedules/inverse_sqrt")
class InverseSqrt(Schedule):
    """Linear warmup, then decay by the inverse square root of the step.

    The factor is min(n / warmup_steps, sqrt(warmup_steps / n)) in step n = 1, 2, 3 ...

    Args:
        warmup_steps: Number of steps of the warmup.

    Reference: Vaswani et al., "Attention Is All You Need", 2017, section 5.3.
    """

    def __init__(self, warmup_steps: Size = 4000) -> None:
        self.warmup_steps = warmup_steps

    def factor_at(self, step: int) -> float:
        """Return the minimum of warmup and decay."""
        count = step + 1
        return min(count / self.warmup_steps, math.sqrt(self.warmup_steps / count))
