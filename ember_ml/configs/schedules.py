"""Configs of the learning rate schedules."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Component, Count, Flag, NonNegative, Positive, Probability, Size

ScheduleField = Annotated[Any, Component("schedules")]


class ConstantConfig(Config):
    """One factor, for some steps or for ever."""

    component: ClassVar[str] = "schedules/constant"
    factor: NonNegative = 1.0
    steps: Size | None = None


class StepConfig(Config):
    """A drop every so many steps, or at given ones."""

    component: ClassVar[str] = "schedules/step"
    step_size: Size | None = None
    milestones: tuple[Size, ...] = ()
    gamma: NonNegative = 0.1

    @model_validator(mode="after")
    def _one_of_both(self) -> StepConfig:
        if (self.step_size is None) == (not self.milestones):
            raise ValueError("give step_size or milestones, one of the two")
        return self


class ExponentialConfig(Config):
    """The same share gone at every step."""

    component: ClassVar[str] = "schedules/exponential"
    gamma: Positive = 0.99
    decay_steps: Size = 1


class LinearConfig(Config):
    """A straight line."""

    component: ClassVar[str] = "schedules/linear"
    total_steps: Size
    start_factor: NonNegative = 1.0
    final_factor: NonNegative = 0.0


class CosineConfig(Config):
    """Half a wave of the cosine, once or again and again, after a warm-up."""

    component: ClassVar[str] = "schedules/cosine"
    total_steps: Size
    warmup_steps: Count = 0
    final_factor: NonNegative = 0.0
    start_factor: NonNegative = 0.0
    restart_every: Size | None = None
    restart_growth: Size = 1

    @model_validator(mode="after")
    def _warmup_ends(self) -> CosineConfig:
        if self.warmup_steps >= self.total_steps:
            raise ValueError("total_steps must be more than warmup_steps")
        return self


class WarmupConfig(Config):
    """A straight line up to 1."""

    component: ClassVar[str] = "schedules/warmup"
    warmup_steps: Size
    start_factor: NonNegative = 0.0


class OneCycleConfig(Config):
    """Up, and down to less than before."""

    component: ClassVar[str] = "schedules/one_cycle"
    total_steps: Annotated[int, Field(strict=True, ge=2)]
    rising_share: Probability = 0.3
    start_divisor: Positive = 25.0
    final_divisor: Positive = 1e4
    shape: Literal["cosine", "linear"] = "cosine"
    three_phases: Flag = False


class PolynomialConfig(Config):
    """A power of what is left of the steps."""

    component: ClassVar[str] = "schedules/polynomial"
    total_steps: Size
    power: Positive = 1.0
    final_factor: NonNegative = 0.0


class InverseSqrtConfig(Config):
    """A line up to 1, then one over the root of the steps."""

    component: ClassVar[str] = "schedules/inverse_sqrt"
    warmup_steps: Size = 4000


class PlateauConfig(Config):
    """A drop when what is observed gets no better."""

    component: ClassVar[str] = "schedules/plateau"
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.1
    patience: Count = 10
    mode: Literal["min", "max"] = "min"
    threshold: NonNegative = 1e-4
    threshold_mode: Literal["relative", "absolute"] = "relative"
    cooldown: Count = 0
    least_factor: NonNegative = 0.0


class ChainedConfig(Config):
    """Schedules one after the other."""

    component: ClassVar[str] = "schedules/chained"
    parts: Annotated[tuple[tuple[ScheduleField, Size], ...], Field(min_length=1)]
