"""Configs of the losses."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Count, Flag, NonNegative, Positive, Probability, Real


class LossConfig(Config):
    """How the losses of the elements become one number."""

    reduction: Literal["mean", "sum", "none"] = "mean"


class MSEConfig(LossConfig):
    """The squared distance."""

    component: ClassVar[str] = "losses/mse"


class MAEConfig(LossConfig):
    """The distance."""

    component: ClassVar[str] = "losses/mae"


class HuberConfig(LossConfig):
    """Half the squared distance near the target, a line far from it."""

    component: ClassVar[str] = "losses/huber"
    delta: Positive = 1.0


class SmoothL1Config(LossConfig):
    """The distance, rounded off near the target."""

    component: ClassVar[str] = "losses/smooth_l1"
    beta: NonNegative = 1.0


class LogCoshConfig(LossConfig):
    """The logarithm of the hyperbolic cosine of the distance."""

    component: ClassVar[str] = "losses/log_cosh"


class CosineConfig(LossConfig):
    """1 minus the cosine of the angle."""

    component: ClassVar[str] = "losses/cosine"
    axis: int = -1


class BinaryCrossEntropyConfig(LossConfig):
    """The cross entropy with targets of 0 and 1."""

    component: ClassVar[str] = "losses/binary_cross_entropy"
    from_logits: Flag = True
    positive_weight: NonNegative = 1.0


class HingeConfig(LossConfig):
    """How far a score is from the right side of a margin."""

    component: ClassVar[str] = "losses/hinge"
    margin: Real = 1.0


class SquaredHingeConfig(LossConfig):
    """The square of the hinge loss."""

    component: ClassVar[str] = "losses/squared_hinge"
    margin: Real = 1.0


class _ClassesConfig(LossConfig):
    label_smoothing: Probability = 0.0
    class_weight: tuple[NonNegative, ...] | None = None
    axis: int = -1


class CrossEntropyConfig(_ClassesConfig):
    """The cross entropy with classes."""

    component: ClassVar[str] = "losses/cross_entropy"
    ignore_index: int = -100


class CategoricalCrossEntropyConfig(_ClassesConfig):
    """The cross entropy with probabilities of classes."""

    component: ClassVar[str] = "losses/categorical_cross_entropy"


class KLDivConfig(Config):
    """The Kullback-Leibler divergence of log-probabilities."""

    component: ClassVar[str] = "losses/kl_div"
    log_target: Flag = False
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean"


class PoissonConfig(LossConfig):
    """The negative log-likelihood of counts."""

    component: ClassVar[str] = "losses/poisson"
    log_input: Flag = True
    full: Flag = False
    eps: Positive = 1e-8


class CTCConfig(LossConfig):
    """Connectionist temporal classification."""

    component: ClassVar[str] = "losses/ctc"
    blank: Count = 0
    zero_infinity: Flag = False
