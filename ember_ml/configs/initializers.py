"""Configs of the initializers."""

from __future__ import annotations

from typing import ClassVar, Literal

from ember_ml.configs.base import Config
from ember_ml.configs.fields import NonNegative, Positive, Probability, Real


class ZerosConfig(Config):
    """All zeros."""

    component: ClassVar[str] = "initializers/zeros"


class OnesConfig(Config):
    """All ones."""

    component: ClassVar[str] = "initializers/ones"


class ConstantConfig(Config):
    """One value everywhere."""

    component: ClassVar[str] = "initializers/constant"
    value: Real = 0.0


class UniformConfig(Config):
    """Uniform between two bounds."""

    component: ClassVar[str] = "initializers/uniform"
    low: Real = -0.05
    high: Real = 0.05


class NormalConfig(Config):
    """Normally distributed."""

    component: ClassVar[str] = "initializers/normal"
    mean: Real = 0.0
    std: NonNegative = 0.02


class TruncatedNormalConfig(Config):
    """Normally distributed, cut off at so many standard deviations."""

    component: ClassVar[str] = "initializers/truncated_normal"
    mean: Real = 0.0
    std: NonNegative = 0.02
    bound: Positive = 2.0


class _ScaledConfig(Config):
    gain: Positive = 1.0
    distribution: Literal["uniform", "normal"] = "uniform"


class GlorotConfig(_ScaledConfig):
    """Variance 2 / (fan in + fan out)."""

    component: ClassVar[str] = "initializers/glorot"


class HeConfig(_ScaledConfig):
    """Variance 2 / fan in."""

    component: ClassVar[str] = "initializers/he"


class LecunConfig(_ScaledConfig):
    """Variance 1 / fan in."""

    component: ClassVar[str] = "initializers/lecun"


class OrthogonalConfig(Config):
    """Orthogonal rows or columns."""

    component: ClassVar[str] = "initializers/orthogonal"
    gain: Positive = 1.0


class IdentityConfig(Config):
    """Ones on the diagonal."""

    component: ClassVar[str] = "initializers/identity"
    gain: Real = 1.0


class SparseConfig(Config):
    """Normal, with a share of each column set to zero."""

    component: ClassVar[str] = "initializers/sparse"
    sparsity: Probability = 0.9
    std: NonNegative = 0.01
