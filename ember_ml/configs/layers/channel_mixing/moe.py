"""Configs of the mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import ActivationField, Component, Flag, NonNegative, Positive, Size
from ember_ml.configs.layers.channel_mixing.gated_linear import GELU_TANH
from ember_ml.configs.patterns import sized

STACKED_EXPERTS = {
    "mlp": GELU_TANH,
    "glu": "sigmoid",
    "swiglu": "silu",
    "geglu": "gelu",
    "reglu": "relu",
}
"""Experts that are made of stacked matrices, and their activations."""

RouterName = Literal["softmax", "sigmoid", "noisy", "top_p", "expert_choice"]
Share = Annotated[float, Field(gt=0, le=1)]


class _Expert(Component):
    """A field that holds the name of stacked experts, or the config of a layer."""

    def _checked(self, value: Any) -> Any:
        stacked = isinstance(value, str) and value in STACKED_EXPERTS
        return value if stacked else super()._checked(value)


class MoEConfig(Config):
    """Experts of which a few work on each position."""

    component: ClassVar[str] = "layers/moe"
    features: Size
    num_experts: Size = 8
    top_k: Size = 2
    expert: Annotated[Any, _Expert("layers")] = "swiglu"
    inner_features: Size | None = None
    router: RouterName = "softmax"
    top_p: Share = 0.7
    normalize: Flag = True
    combiner: Literal["sum", "concat"] = "sum"
    capacity_factor: Positive | None = None
    overflow: Literal["drop", "pass"] = "drop"
    balance_weight: NonNegative = 0.01
    z_weight: NonNegative = 0.001

    @field_validator("expert", mode="before")
    @classmethod
    def _with_features(cls, value: Any, info: ValidationInfo) -> Any:
        """Give a layer that was only named its size."""
        stacked = isinstance(value, str) and value in STACKED_EXPERTS
        if stacked or not isinstance(value, (str, Mapping)) or "features" not in info.data:
            return value
        return sized(value, info.data["features"])


class MoEMLPConfig(Config):
    """Gated features that all experts share, and a few of several matrices that read them."""

    component: ClassVar[str] = "layers/moe_mlp"
    features: Size
    num_experts: Size = 8
    top_k: Size = 2
    inner_features: Size = 16
    activation: ActivationField = GELU_TANH
    router: RouterName = "softmax"
    capacity_factor: Positive | None = None
    overflow: Literal["drop", "pass"] = "drop"
    balance_weight: NonNegative = 0.01
    z_weight: NonNegative = 0.001
