"""Schedules of one formula."""

from __future__ import annotations

import bisect
import math

from ember_ml.configs import schedules as configs
from ember_ml.registry import register
from ember_ml.training.schedules.base import Schedule, line


@register("schedules/constant", config=configs.ConstantConfig)
class Constant(Schedule):
    """One factor, for `steps` steps or for ever; 1 afterwards."""

    def __init__(self, factor: float = 1.0, steps: int | None = None) -> None:
        self.factor = factor
        self.steps = steps

    def factor_at(self, step: int) -> float:
        """The factor."""
        return self.factor if self.steps is None or step < self.steps else 1.0


@register("schedules/step", config=configs.StepConfig)
class Step(Schedule):
    """A drop every `step_size` steps, or at each of the `milestones`.

    Args:
        gamma: what is left at each drop.
    """

    def __init__(
        self,
        step_size: int | None = None,
        milestones: tuple[int, ...] = (),
        gamma: float = 0.1,
    ) -> None:
        self.step_size = step_size
        self.milestones = sorted(milestones)
        self.gamma = gamma

    def factor_at(self, step: int) -> float:
        """Gamma to the power of the drops so far."""
        if self.step_size is not None:
            return self.gamma ** (step // self.step_size)
        return self.gamma ** bisect.bisect_right(self.milestones, step)


@register("schedules/exponential", config=configs.ExponentialConfig)
class Exponential(Schedule):
    """gamma to the power step / decay_steps."""

    def __init__(self, gamma: float = 0.99, decay_steps: int = 1) -> None:
        self.gamma = gamma
        self.decay_steps = decay_steps

    def factor_at(self, step: int) -> float:
        """The power."""
        return self.gamma ** (step / self.decay_steps)


@register("schedules/linear", config=configs.LinearConfig)
class Linear(Schedule):
    """A straight line over `total_steps`; its end afterwards."""

    def __init__(
        self, total_steps: int, start_factor: float = 1.0, final_factor: float = 0.0
    ) -> None:
        self.total_steps = total_steps
        self.start_factor = start_factor
        self.final_factor = final_factor

    def factor_at(self, step: int) -> float:
        """The point on the line."""
        share = min(step, self.total_steps) / self.total_steps
        return line(self.start_factor, self.final_factor, share)


@register("schedules/warmup", config=configs.WarmupConfig)
class Warmup(Schedule):
    """A straight line up to 1, which it stays."""

    def __init__(self, warmup_steps: int, start_factor: float = 0.0) -> None:
        self.warmup_steps = warmup_steps
        self.start_factor = start_factor

    def factor_at(self, step: int) -> float:
        """The point on the line."""
        return line(self.start_factor, 1.0, min(step / self.warmup_steps, 1.0))


@register("schedules/polynomial", config=configs.PolynomialConfig)
class Polynomial(Schedule):
    """(1 - step / total_steps) to a power, down to the final factor."""

    def __init__(self, total_steps: int, power: float = 1.0, final_factor: float = 0.0) -> None:
        self.total_steps = total_steps
        self.power = power
        self.final_factor = final_factor

    def factor_at(self, step: int) -> float:
        """The power of what is left."""
        left = 1.0 - min(step, self.total_steps) / self.total_steps
        return line(self.final_factor, 1.0, left**self.power)


@register("schedules/inverse_sqrt", config=configs.InverseSqrtConfig)
class InverseSqrt(Schedule):
    """min(n / warmup_steps, sqrt(warmup_steps / n)) for step n = 1, 2, 3 ...

    Reference: Vaswani et al., "Attention Is All You Need", 2017, section 5.3.
    """

    def __init__(self, warmup_steps: int = 4000) -> None:
        self.warmup_steps = warmup_steps

    def factor_at(self, step: int) -> float:
        """The lesser of the two."""
        count = step + 1
        return min(count / self.warmup_steps, math.sqrt(self.warmup_steps / count))
