"""Mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import core_schema

from ember_ml import ops
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.base import Config
from ember_ml.configs.fields import (
    ActivationField,
    Component,
    ComponentLike,
    Fraction,
    NonNegative,
    Positive,
    RouterName,
    Size,
)
from ember_ml.configs.patterns import sized
from ember_ml.nn import activations
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.experts.expert_modules import (
    Experts,
    GatedExperts,
    LayerExperts,
    LinearExperts,
    MLPExperts,
)
from ember_ml.nn.layers.channel_mixing.experts.mixture import Mixture
from ember_ml.nn.layers.channel_mixing.experts.routers import ROUTERS
from ember_ml.nn.layers.channel_mixing.gated_linear import GELU_TANH, inner_size
from ember_ml.registry import register

STACKED_EXPERTS: dict[str, str | Config] = {
    "mlp": GELU_TANH,
    "glu": "sigmoid",
    "swiglu": "silu",
    "geglu": "gelu",
    "reglu": "relu",
}
"""Names of the experts with stacked matrices, and their activations."""


class _Expert(Component):
    """Annotation of the expert: the name of a stacked expert, or a layer of width `features`."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.with_info_plain_validator_function(self._sized)

    def _sized(self, value: object, info: ValidationInfo) -> object:
        if isinstance(value, str) and value in STACKED_EXPERTS:
            return value
        if isinstance(value, (str, Mapping)) and "features" in info.data:
            value = sized(value, info.data["features"])
        return self._checked(value)


@register("layers/moe", aliases=["mixture_of_experts"])
class MoE(Mixture):
    r"""Mixture of experts: a router chooses a few experts for each position.

    .. math:: y = \sum_{e \in \mathrm{chosen}(x)} w_e(x) \, f_e(x)

    Only the chosen experts run. During training the auxiliary losses of the router are added to the
    loss of the trainer. `statistics` shows how inputs are routed. An expert that mixes positions
    (such as Hyena or attention) gets whole sequences, routed by the mean of their positions.

    With a capacity, and with the router "expert_choice", the layer is not causal: its output at a
    position depends on the other positions of the batch.

    Args:
        features: Number of input and output features.
        num_experts: Number of experts. Default: 8.
        top_k: Number of experts per position, at most `num_experts`. Default: 2.
        expert: The function f. "mlp", "glu", "swiglu", "geglu" and "reglu" have stacked matrices
            without biases. Any other layer is given by name or config; its width is `features`.
            Default: "swiglu".
        inner_features: Inner size of the stacked experts. Default: 4 times the features for "mlp";
            8/3 of the features, rounded up to a multiple of 16, for the others.
        router: "softmax", "sigmoid", "noisy" (softmax with noise during training), "top_p" (the
            smallest number of experts with a total probability of `top_p`) or "expert_choice"
            (experts choose positions). Default: "softmax".
        top_p: Total probability of the experts, for the router "top_p". Default: 0.7.
        normalize: Whether the weights of a position's experts sum to 1. Ignored for `top_k=1` and
            for the router "expert_choice". Default: True.
        combiner: "sum", or "concat" for a linear map of the concatenated outputs. Default: "sum".
        capacity_factor: Capacity of an expert, relative to an equal share of the work. Default: no
            limit.
        overflow: Treatment of a position that exceeds the capacity of an expert: "drop" omits the
            expert's output; "pass" replaces it by the position's input. Default: "drop".
        balance_weight: Weight of the load balancing loss. Default: 0.01.
        z_weight: Weight of the loss that penalizes large router logits. Default: 0.001.

    Shape: (..., features) -> (..., features).

    Reference: Shazeer et al., "Outrageously Large Neural Networks: The Sparsely-Gated
    Mixture-of-Experts Layer", 2017; Fedus et al., "Switch Transformers", 2021.

    Example:
        >>> layer = nn.layers.MoE(8, num_experts=4, expert="mlp")
        >>> layer(ops.ones((2, 3, 8))).shape
        (2, 3, 8)
        >>> layer.statistics(ops.ones((2, 3, 8))).load.shape
        (4,)
    """

    def __init__(
        self,
        features: Size,
        num_experts: Size = 8,
        top_k: Size = 2,
        expert: Annotated[ComponentLike, _Expert("layers")] = "swiglu",
        inner_features: Size | None = None,
        router: RouterName = "softmax",
        top_p: Fraction = 0.7,
        normalize: bool = True,
        combiner: Literal["sum", "concat"] = "sum",
        capacity_factor: Positive | None = None,
        overflow: Literal["drop", "pass"] = "drop",
        balance_weight: NonNegative = 0.01,
        z_weight: NonNegative = 0.001,
    ) -> None:
        super().__init__(
            features, num_experts, top_k, capacity_factor, overflow, balance_weight, z_weight
        )
        self.router = ROUTERS[router](features, num_experts, top_k, top_p, normalize)
        self.experts = _create_experts(expert, num_experts, features, inner_features)
        self.by_sequence = _mixes_positions(self.experts)
        if combiner == "concat":
            self.combiner = Dense(self.router.choices * features, features, bias=False)


def _create_experts(
    expert: ComponentLike, num_experts: int, features: int, inner: int | None
) -> Experts:
    if isinstance(expert, Config):
        return LayerExperts(num_experts, expert)
    if not isinstance(expert, str):
        raise ArgumentTypeError(f"MoE: expert must be a name or a config, not {expert!r:.60}")
    activation = STACKED_EXPERTS[expert]
    if expert == "mlp":
        return MLPExperts(num_experts, features, inner or 4 * features, activation)
    return GatedExperts(num_experts, features, inner or inner_size(features), activation)


def _mixes_positions(experts: Experts) -> bool:
    # imported here because the sequence mixers import this package
    from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer

    return isinstance(experts, LayerExperts) and isinstance(experts.layers[0], SequenceMixer)


@register("layers/moe_mlp", aliases=["moe-mlp"])
class MoEMLP(Mixture):
    r"""Mixture of experts of MAD: gated features shared by all experts, one matrix per expert.

    .. math:: y = \sum_{e \in \mathrm{top}_k} w_e(x) \, W_e (W_1 x \odot \phi(W_2 x))

    The weights of a position's experts sum to 1. Capacity, overflow and losses work as in `MoE`.

    Args:
        features: Number of input and output features.
        num_experts: Number of experts. Default: 8.
        top_k: Number of experts per position, at most `num_experts`. Default: 2.
        inner_features: Number of shared features per expert. Default: 16.
        activation: The activation function phi. Default: GELU with the tanh approximation.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice". Default: "softmax".
        capacity_factor: Capacity of an expert, relative to an equal share of the work. Default: no
            limit.
        overflow: "drop" or "pass". Default: "drop".
        balance_weight: Weight of the load balancing loss. Default: 0.01.
        z_weight: Weight of the loss that penalizes large router logits. Default: 0.001.

    Shape: (..., features) -> (..., features).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.

    Example:
        >>> nn.layers.MoEMLP(128).num_parameters()
        164872
    """

    def __init__(
        self,
        features: Size,
        num_experts: Size = 8,
        top_k: Size = 2,
        inner_features: Size = 16,
        activation: ActivationField = GELU_TANH,
        router: RouterName = "softmax",
        capacity_factor: Positive | None = None,
        overflow: Literal["drop", "pass"] = "drop",
        balance_weight: NonNegative = 0.01,
        z_weight: NonNegative = 0.001,
    ) -> None:
        super().__init__(
            features, num_experts, top_k, capacity_factor, overflow, balance_weight, z_weight
        )
        shared = num_experts * inner_features
        self.router = ROUTERS[router](features, num_experts, top_k, bias=True)
        self.expand = Dense(features, 2 * shared, bias=False)
        self.experts = LinearExperts(num_experts, shared, features)
        self.activation = activations.get(activation)

    def expert_inputs(self, items: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
        """Return the shared features."""
        gate, value = ops.split(self.expand(items), 2, axis=-1)
        return (self.activation(gate) * value,)
