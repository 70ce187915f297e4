"""Mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import core_schema

from ember_ml import ops
from ember_ml._core.tensor import Tensor
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
from ember_ml.nn.layers.channel_mixing.experts import (
    ROUTERS,
    GatedExperts,
    LayerExperts,
    LinearExperts,
    MLPExperts,
)
from ember_ml.nn.layers.channel_mixing.experts.mixture import Mixture
from ember_ml.nn.layers.channel_mixing.gated_linear import GELU_TANH, inner_size
from ember_ml.registry import register

STACKED_EXPERTS = {
    "mlp": GELU_TANH,
    "glu": "sigmoid",
    "swiglu": "silu",
    "geglu": "gelu",
    "reglu": "relu",
}
"""Experts computed from stacked matrices, and their activations."""


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
    r"""A mixture of experts, of which a few work on each position.

    .. math:: y = \sum_{e \in \mathrm{chosen}(x)} w_e(x) \, f_e(x)

    Only the chosen experts run. In training the losses of the router are reported to the trainer
    (`nn.auxiliary`); `statistics` tells how inputs are routed. An expert that mixes positions (a
    hyena, an attention ...) gets whole sequences, chosen by the mean of their positions.

    With a capacity, and with the router "expert_choice", what happens to a position depends on the
    other positions of the batch, later ones too.

    Args:
        features: the number of features of x and y.
        num_experts: how many experts there are.
        top_k: how many work on a position.
        expert: f. "mlp", "glu", "swiglu", "geglu" and "reglu" are computed from stacked matrices
            without biases; or any layer by name or config, whose sizes follow from `features`.
        inner_features: the inner size of the former; 4 times the features for "mlp", 8/3 of them
            up to a multiple of 16 for the others, if not given.
        router: "softmax", "sigmoid", "noisy" (a softmax with noise in training), "top_p" (as many
            experts as are `top_p` probable together) or "expert_choice" (experts choose positions).
        top_p: for the router "top_p".
        normalize: whether the weights of a position's experts add up to 1, if they are several and
            the position chooses.
        combiner: "sum", or "concat" for a linear map of the outputs side by side.
        capacity_factor: the room of an expert, in terms of its share of the work if all do the
            same; without it there is no limit.
        overflow: what comes of a position for which an expert has no room: "drop", nothing; or
            "pass", the position as it is in place of the expert's output.
        balance_weight: of the loss that keeps the experts equally busy.
        z_weight: of the loss that keeps the router's logits small.

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
        self._check_choice(num_experts, top_k)
        self.features = features
        self.capacity_factor = capacity_factor
        self.overflow = overflow
        self.balance_weight = balance_weight
        self.z_weight = z_weight
        self.router = ROUTERS[router](features, num_experts, top_k, top_p, normalize)
        self.experts = _experts(expert, num_experts, features, inner_features)
        self.by_sequence = _mixes_positions(self.experts)
        if combiner == "concat":
            self.combiner = Dense(self.router.choices * features, features, bias=False)


def _experts(expert: Any, count: int, features: int, inner: int | None) -> Any:
    if not isinstance(expert, str):
        return LayerExperts(count, expert)
    activation = STACKED_EXPERTS[expert]
    if expert == "mlp":
        return MLPExperts(count, features, inner or 4 * features, activation)
    return GatedExperts(count, features, inner or inner_size(features), activation)


def _mixes_positions(experts: Any) -> bool:
    # not above: the sequence mixers may import this package while it is being imported
    from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer

    return isinstance(experts, LayerExperts) and isinstance(experts.layers[0], SequenceMixer)


@register("layers/moe_mlp", aliases=["moe-mlp"])
class MoEMLP(Mixture):
    r"""MAD's mixture of experts: gated features that all share, read by a few experts.

    .. math:: y = \sum_{e \in \mathrm{top}_k} w_e(x) \, W_e (W_1 x \odot \phi(W_2 x))

    The router's softmax is over the chosen experts alone. Capacity, overflow and losses: as of
    `MoE`.

    Args:
        features: the number of features of x and y.
        num_experts: how many experts there are.
        top_k: how many work on a position.
        inner_features: the shared features, for each expert.
        activation: phi, GELU in the form with tanh if not given.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice".
        capacity_factor: the room of an expert, in terms of its even share of the work.
        overflow: "drop" or "pass".
        balance_weight: of the loss that keeps the experts equally busy.
        z_weight: of the loss that keeps the router's logits small.

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
        self._check_choice(num_experts, top_k)
        self.features = features
        self.capacity_factor = capacity_factor
        self.overflow = overflow
        self.balance_weight = balance_weight
        self.z_weight = z_weight
        shared = num_experts * inner_features
        self.router = ROUTERS[router](features, num_experts, top_k, bias=True)
        self.expand = Dense(features, 2 * shared, bias=False)
        self.experts = LinearExperts(num_experts, shared, features)
        self.activation = activations.get(activation)

    def expert_inputs(self, items: Tensor, padding: Tensor | None) -> tuple[Tensor, ...]:
        """The shared features."""
        gate, value = ops.split(self.expand(items), 2, axis=-1)
        return (self.activation(gate) * value,)
