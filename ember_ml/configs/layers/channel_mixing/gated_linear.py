"""Configs of the gated layers, and of the plain one that they are compared with."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.activations import GELUConfig
from ember_ml.configs.base import Config
from ember_ml.configs.fields import ActivationField, Below1, Flag, Size

GELU_TANH = GELUConfig(approximate=True)


class GatedLinearConfig(Config):
    """A linear map, gated by an activation of another."""

    component: ClassVar[str] = "layers/gated_linear"
    features: Size
    inner_features: Size | None = None
    activation: ActivationField = "silu"
    bias: Flag = False
    dropout: Below1 = 0.0


class GateConfig(Config):
    """What the layers whose gate has a name of its own share."""

    features: Size
    inner_features: Size | None = None
    bias: Flag = False
    dropout: Below1 = 0.0


class GLUConfig(GateConfig):
    """A gated linear map whose gate is a sigmoid."""

    component: ClassVar[str] = "layers/glu"


class SwiGLUConfig(GateConfig):
    """A gated linear map whose gate is a SiLU."""

    component: ClassVar[str] = "layers/swiglu"


class GeGLUConfig(GateConfig):
    """A gated linear map whose gate is a GELU."""

    component: ClassVar[str] = "layers/geglu"


class ReGLUConfig(GateConfig):
    """A gated linear map whose gate is a ReLU."""

    component: ClassVar[str] = "layers/reglu"


class FeedForwardConfig(Config):
    """Two linear maps with an activation between them."""

    component: ClassVar[str] = "layers/feed_forward"
    features: Size
    inner_features: Size | None = None
    activation: ActivationField = GELU_TANH
    bias: Flag = False
    dropout: Below1 = 0.0
