"""Routers: modules that choose the experts of each item and their weights."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import initializers
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.experts.routing import (
    Routing,
    route_by_expert,
    route_by_item,
)
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.ops.random._draw import draw


class Router(Module):
    """Base of the routers: the logits are linear in the features.

    Half precision is computed in float32.

    Args:
        features: Number of features of an item.
        num_experts: Number of experts.
        top_k: Number of experts per item. Default: 2.
        top_p: Total probability that the chosen experts must reach; only used by `TopPRouter`.
            Default: 0.7.
        normalize: Whether the weights of the chosen experts sum to 1. Ignored for `top_k=1`, where
            a constant weight would give the router no gradient. Default: True.
        bias: Whether the logits have biases. Default: False.
    """

    is_balanced: bool = False
    """Whether all experts get the same number of items by construction."""

    def __init__(
        self,
        features: int,
        num_experts: int,
        top_k: int = 2,
        top_p: float = 0.7,
        normalize: bool = True,
        bias: bool = False,
    ) -> None:
        self.num_experts = num_experts
        self.top_k = top_k
        self.top_p = top_p
        self.normalize = normalize and top_k > 1
        self.weight = Parameter(initializers.get("glorot")((num_experts, features)))
        self.bias = Parameter(ops.zeros(num_experts), decay=False) if bias else None

    @property
    def choices(self) -> int:
        """Largest number of experts of one item."""
        return self.top_k

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits, (items, experts)."""
        bias = None if self.bias is None else upcast_half(self.bias)
        return ops.linear(upcast_half(x), upcast_half(self.weight), bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Return the assignments of items to experts.

        Args:
            x: Items, (items, features).
            mask: (items,), False for padding, which gets no expert.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def _weights(self, scores: Tensor) -> Tensor:
        """Return the weights of the chosen experts from their scores, (items, choices)."""
        return scores / (scores.sum(axis=-1, keepdims=True) + 1e-20) if self.normalize else scores


class SoftmaxRouter(Router):
    r"""Router that chooses the k most probable experts.

    .. math:: p = \mathrm{softmax}(W x), \quad w_e = p_e / \sum_{j \in \mathrm{top}_k(p)} p_j

    Reference: Fedus et al., "Switch Transformers", 2021; Jiang et al., "Mixtral of Experts", 2024.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Return the assignments of items to experts; see `Router.forward`."""
        logits = self.logits(x)
        probabilities = ops.softmax(logits, axis=-1)
        chosen = ops.topk(probabilities, self.top_k)
        return route_by_item(
            chosen.indices, self._weights(chosen.values), logits, probabilities, mask
        )


class NoisyRouter(SoftmaxRouter):
    r"""Router that adds learned noise to the logits during training, so that all experts get tried.

    .. math:: W x + \epsilon \odot \mathrm{softplus}(W_\epsilon x), \quad \epsilon \sim N(0, 1)

    Reference: Shazeer et al., "Outrageously Large Neural Networks", 2017.
    """

    def __init__(
        self,
        features: int,
        num_experts: int,
        top_k: int = 2,
        top_p: float = 0.7,
        normalize: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__(features, num_experts, top_k, top_p, normalize, bias)
        self.noise = Parameter(ops.zeros((num_experts, features)))

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits, with noise in training mode, (items, experts)."""
        logits = super().logits(x)
        if not self.training:
            return logits
        scale = ops.softplus(ops.linear(upcast_half(x), upcast_half(self.noise)))
        noise = draw("normal", logits.shape, 0.0, 1.0, like=logits, dtype=logits.dtype)
        return logits + scale * noise


class SigmoidRouter(Router):
    r"""Router that scores each expert independently and chooses the k highest scores.

    .. math:: s = \sigma(W x), \quad w_e = s_e / \sum_{j \in \mathrm{top}_k(s)} s_j

    Reference: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Return the assignments of items to experts; see `Router.forward`."""
        logits = self.logits(x)
        scores = ops.sigmoid(logits)
        probabilities = scores / (scores.sum(axis=-1, keepdims=True) + 1e-20)
        chosen = ops.topk(scores, self.top_k)
        return route_by_item(
            chosen.indices, self._weights(chosen.values), logits, probabilities, mask
        )


class TopPRouter(Router):
    r"""Router that chooses the smallest number of experts with a total probability of `top_p`.

    An ambiguous item gets more experts. `top_k` is not used.

    Reference: Huang et al., "Harder Tasks Need More Experts: Dynamic Routing in MoE Models", 2024.
    """

    @property
    def choices(self) -> int:
        """Largest number of experts of one item: all, if they are equally probable."""
        return self.num_experts

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Return the assignments of items to experts; see `Router.forward`."""
        logits = self.logits(x)
        probabilities = ops.softmax(logits, axis=-1)
        ranked = ops.topk(probabilities, self.num_experts)
        before = ops.cumsum(ranked.values, axis=-1) - ranked.values
        needed = before < self.top_p
        experts = ops.where(needed, ranked.indices, self.num_experts)
        weights = self._weights(ops.where(needed, ranked.values, 0.0))
        return route_by_item(experts, weights, logits, probabilities, mask)


class ExpertChoiceRouter(Router):
    r"""Router in which each expert chooses its top_k * items / experts most probable items.

    All experts get the same number of items. The number of experts of an item depends on the other
    items of the batch, including later positions: the router is not causal.

    Reference: Zhou et al., "Mixture-of-Experts with Expert Choice Routing", 2022.
    """

    is_balanced = True

    @property
    def choices(self) -> int:
        """Largest number of experts of one item: all may choose it."""
        return self.num_experts

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Return the assignments of items to experts; see `Router.forward`."""
        logits = self.logits(x)
        probabilities = ops.softmax(logits, axis=-1)
        scores = (
            probabilities
            if mask is None
            else ops.where(ops.expand_dims(mask, -1), probabilities, 0.0)
        )
        capacity = max(1, self.top_k * x.shape[0] // self.num_experts)
        chosen = ops.topk(ops.transpose(scores), capacity)
        return route_by_expert(chosen.indices, chosen.values, logits, probabilities, mask)


ROUTERS: dict[str, type[Router]] = {
    "softmax": SoftmaxRouter,
    "sigmoid": SigmoidRouter,
    "noisy": NoisyRouter,
    "top_p": TopPRouter,
    "expert_choice": ExpertChoiceRouter,
}
