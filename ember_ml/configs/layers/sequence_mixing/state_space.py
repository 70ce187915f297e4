"""Configs of the state spaces."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Flag, NonNegative, Positive, Probability, Size

EvenSize = Annotated[int, Field(strict=True, ge=2, multiple_of=2)]


class MambaConfig(Config):
    """A selective state space."""

    component: ClassVar[str] = "layers/mamba"
    features: Size
    d_state: Size = 4
    d_conv: Size = 4
    expand: Size = 2
    dt_rank: Size | None = None
    dt_min: Positive = 0.001
    dt_max: Positive = 0.1
    bias: Flag = False


class Mamba2Config(Config):
    """A selective state space with one decay a head."""

    component: ClassVar[str] = "layers/mamba2"
    features: Size
    d_state: Size = 16
    head_dim: Size = 32
    num_groups: Size = 1
    d_conv: Size = 4
    expand: Size = 2
    dt_min: Positive = 0.001
    dt_max: Positive = 0.1
    chunk_size: Size = 32


class S4DConfig(Config):
    """A diagonal state space that does not depend on the data."""

    component: ClassVar[str] = "layers/s4d"
    features: Size
    d_state: EvenSize = 32
    dt_min: Positive = 0.001
    dt_max: Positive = 0.1


class LRUConfig(Config):
    """A linear recurrence with complex eigenvalues in a ring."""

    component: ClassVar[str] = "layers/lru"
    features: Size
    d_state: Size | None = None
    r_min: Probability = 0.0
    r_max: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_phase: NonNegative = 6.283
