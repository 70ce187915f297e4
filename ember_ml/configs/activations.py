"""Configs of the activations."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, NonNegative, Positive, Real, Size


class ReLUConfig(Config):
    """max(x, 0)."""

    component: ClassVar[str] = "activations/relu"


class ReLU6Config(Config):
    """min(max(x, 0), 6)."""

    component: ClassVar[str] = "activations/relu6"


class ReLUSquaredConfig(Config):
    """max(x, 0)^2."""

    component: ClassVar[str] = "activations/relu_squared"


class SELUConfig(Config):
    """Elu that keeps mean 0 and variance 1."""

    component: ClassVar[str] = "activations/selu"


class SiLUConfig(Config):
    """x sigmoid(x)."""

    component: ClassVar[str] = "activations/silu"


class MishConfig(Config):
    """x tanh(softplus(x))."""

    component: ClassVar[str] = "activations/mish"


class TanhConfig(Config):
    """The hyperbolic tangent."""

    component: ClassVar[str] = "activations/tanh"


class LeCunTanhConfig(Config):
    """1.7159 tanh(2 x / 3)."""

    component: ClassVar[str] = "activations/lecun_tanh"


class TanhShrinkConfig(Config):
    """x - tanh(x)."""

    component: ClassVar[str] = "activations/tanh_shrink"


class SigmoidConfig(Config):
    """1 / (1 + exp(-x))."""

    component: ClassVar[str] = "activations/sigmoid"


class LogSigmoidConfig(Config):
    """log(sigmoid(x))."""

    component: ClassVar[str] = "activations/log_sigmoid"


class HardSigmoidConfig(Config):
    """min(max(x + 3, 0), 6) / 6."""

    component: ClassVar[str] = "activations/hard_sigmoid"


class HardSwishConfig(Config):
    """x hard_sigmoid(x)."""

    component: ClassVar[str] = "activations/hard_swish"


class SoftsignConfig(Config):
    """x / (1 + abs(x))."""

    component: ClassVar[str] = "activations/softsign"


class IdentityConfig(Config):
    """x."""

    component: ClassVar[str] = "activations/identity"


class GELUConfig(Config):
    """x times the normal distribution function of x."""

    component: ClassVar[str] = "activations/gelu"
    approximate: Flag = False


class LeakyReLUConfig(Config):
    """x, or a small share of it where it is negative."""

    component: ClassVar[str] = "activations/leaky_relu"
    negative_slope: Real = 0.01


class PReLUConfig(Config):
    """x, or a learned share of it where it is negative."""

    component: ClassVar[str] = "activations/prelu"
    features: Size = 1
    negative_slope: Real = 0.25
    axis: int = -1


class ELUConfig(Config):
    """x, or alpha (exp(x) - 1) where it is negative."""

    component: ClassVar[str] = "activations/elu"
    alpha: Real = 1.0


class CELUConfig(Config):
    """x, or alpha (exp(x / alpha) - 1) where it is negative."""

    component: ClassVar[str] = "activations/celu"
    alpha: Positive = 1.0


class SoftplusConfig(Config):
    """log(1 + exp(beta x)) / beta."""

    component: ClassVar[str] = "activations/softplus"
    beta: Positive = 1.0


class HardTanhConfig(Config):
    """x, kept between two bounds."""

    component: ClassVar[str] = "activations/hard_tanh"
    min_value: Real = -1.0
    max_value: Real = 1.0


class HardShrinkConfig(Config):
    """x, or 0 where it is small."""

    component: ClassVar[str] = "activations/hard_shrink"
    threshold: NonNegative = 0.5


class SoftShrinkConfig(Config):
    """x, moved towards 0."""

    component: ClassVar[str] = "activations/soft_shrink"
    threshold: NonNegative = 0.5


class ThresholdConfig(Config):
    """x, or a value where it is not above a threshold."""

    component: ClassVar[str] = "activations/threshold"
    threshold: Real
    value: Real


class SineConfig(Config):
    """sin(frequency x)."""

    component: ClassVar[str] = "activations/sine"
    frequency: Real = 1.0


class _AlongAxisConfig(Config):
    axis: int = -1


class SoftmaxConfig(_AlongAxisConfig):
    """exp(x) / sum(exp(x))."""

    component: ClassVar[str] = "activations/softmax"


class LogSoftmaxConfig(_AlongAxisConfig):
    """log(softmax(x))."""

    component: ClassVar[str] = "activations/log_softmax"


class SoftminConfig(_AlongAxisConfig):
    """softmax(-x)."""

    component: ClassVar[str] = "activations/softmin"


class SparsemaxConfig(_AlongAxisConfig):
    """The nearest point of the probability simplex."""

    component: ClassVar[str] = "activations/sparsemax"


class GLUConfig(_AlongAxisConfig):
    """One half of an axis times the sigmoid of the other."""

    component: ClassVar[str] = "activations/glu"
