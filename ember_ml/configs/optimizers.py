"""Configs of the optimizers."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Count, Flag, NonNegative, Positive, Real

Betas = tuple[Below1, Below1]
"""Decay rates of two moving averages."""
PositiveBetas = tuple[Annotated[float, Field(gt=0, lt=1)], Below1]


class SGDConfig(Config):
    """Gradient descent."""

    component: ClassVar[str] = "optimizers/sgd"
    learning_rate: NonNegative = 1e-3
    momentum: NonNegative = 0.0
    dampening: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    nesterov: Flag = False

    @model_validator(mode="after")
    def _nesterov_has_momentum(self) -> SGDConfig:
        if self.nesterov and (self.momentum == 0.0 or self.dampening != 0.0):
            raise ValueError("nesterov needs a momentum and no dampening")
        return self


class _AdamConfig(Config):
    learning_rate: NonNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-8


class AdamConfig(_AdamConfig):
    """Adam, with weight decay as a part of the gradient."""

    component: ClassVar[str] = "optimizers/adam"
    weight_decay: NonNegative = 0.0
    amsgrad: Flag = False


class AdamWConfig(_AdamConfig):
    """Adam, with weight decay apart from the gradient."""

    component: ClassVar[str] = "optimizers/adamw"
    weight_decay: NonNegative = 1e-2
    amsgrad: Flag = False


class LAMBConfig(_AdamConfig):
    """Adam with steps in proportion to the parameters."""

    component: ClassVar[str] = "optimizers/lamb"
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0.0


class LionConfig(Config):
    """Steps of one size by the sign of a moving average."""

    component: ClassVar[str] = "optimizers/lion"
    learning_rate: NonNegative = 1e-4
    betas: Betas = (0.9, 0.99)
    weight_decay: NonNegative = 1e-3


class ScheduleFreeAdamWConfig(Config):
    """AdamW that averages its steps in place of a schedule."""

    component: ClassVar[str] = "optimizers/schedule_free_adamw"
    learning_rate: NonNegative = 2.5e-3
    betas: PositiveBetas = (0.9, 0.999)
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0.0
    weight_power: NonNegative = 2.0


class RMSpropConfig(Config):
    """Gradients divided by the root of their mean square."""

    component: ClassVar[str] = "optimizers/rmsprop"
    learning_rate: NonNegative = 1e-2
    alpha: Below1 = 0.99
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0.0
    momentum: NonNegative = 0.0
    centered: Flag = False


class AdagradConfig(Config):
    """Gradients divided by the root of the sum of their squares."""

    component: ClassVar[str] = "optimizers/adagrad"
    learning_rate: NonNegative = 1e-2
    learning_rate_decay: NonNegative = 0.0
    weight_decay: NonNegative = 0.0
    initial_accumulator: NonNegative = 0.0
    eps: NonNegative = 1e-10


class AdadeltaConfig(Config):
    """Steps of the size of earlier steps."""

    component: ClassVar[str] = "optimizers/adadelta"
    learning_rate: NonNegative = 1.0
    rho: Below1 = 0.9
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0.0


class AdafactorConfig(Config):
    """Adam without momentum, whose squares are kept as a row and a column."""

    component: ClassVar[str] = "optimizers/adafactor"
    learning_rate: NonNegative = 1e-2
    beta2_decay: Annotated[float, Field(le=0, allow_inf_nan=False)] = -0.8
    eps: tuple[Positive | None, NonNegative] = (None, 1e-3)
    clip: Positive = 1.0
    weight_decay: NonNegative = 0.0


class MuonConfig(Config):
    """Orthogonal steps for matrices, AdamW for the rest."""

    component: ClassVar[str] = "optimizers/muon"
    learning_rate: NonNegative = 1e-3
    weight_decay: NonNegative = 0.1
    momentum: Below1 = 0.95
    nesterov: Flag = True
    coefficients: tuple[Real, Real, Real] = (3.4445, -4.775, 2.0315)
    eps: Positive = 1e-7
    iterations: Annotated[Count, Field(lt=100)] = 5
    adjust: Literal["original", "match_rms_adamw"] = "original"
    precision: Literal["float32", "bfloat16"] = "float32"
    matrices: Flag = True
    adamw_factor: NonNegative = 1.0
    betas: Betas = (0.9, 0.999)
