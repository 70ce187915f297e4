"""Routers: they decide which experts work on an item, and how much each counts."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn import initializers
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing, by_expert, by_item
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.ops.random._draw import draw


def wide(x: Tensor) -> Tensor:
    """x in float32 if it is in half precision, which is too coarse to choose by."""
    return ops.astype(x, "float32") if x.dtype.itemsize < 4 else x


class Router(Module):
    """The base of the routers: logits that are linear in the features.

    Args:
        features: the number of features of an item.
        num_experts: how many there are to choose from.
        top_k: how many work on an item.
        top_p: the probability that the chosen ones must have together, where a router asks for it.
        normalize: whether the weights of the chosen ones add up to 1; not done for one alone, for
            a constant teaches a router nothing.
        bias: whether the logits have biases.
    """

    is_balanced: bool = False
    """Whether all experts get the same number of items in any case."""

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
        """How many experts can work on one item at most."""
        return self.top_k

    def logits(self, x: Tensor) -> Tensor:
        """(items, experts)."""
        bias = None if self.bias is None else wide(self.bias)
        return ops.linear(wide(x), wide(self.weight), bias)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Who works on what.

        Args:
            x: (items, features).
            mask: (items,), False for padding, on which nobody works.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def _weights(self, chosen: Tensor) -> Tensor:
        """The weights (items, choices) of the chosen ones from their scores."""
        return chosen / (chosen.sum(axis=-1, keepdims=True) + 1e-20) if self.normalize else chosen


class SoftmaxRouter(Router):
    r"""The k most probable experts, by a softmax.

    .. math:: p = \mathrm{softmax}(W x), \quad w_e = p_e / \sum_{j \in \mathrm{top}_k(p)} p_j

    Reference: Fedus et al., "Switch Transformers", 2021; Jiang et al., "Mixtral of Experts", 2024.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Who works on what; see `Router.forward`."""
        logits = self.logits(x)
        shares = ops.softmax(logits, axis=-1)
        chosen = ops.topk(shares, self.top_k)
        return by_item(chosen.indices, self._weights(chosen.values), logits, shares, mask)


class NoisyRouter(SoftmaxRouter):
    r"""The k most probable experts, by logits that training makes noisy so that all get tried.

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
        """(items, experts), with noise in training."""
        logits = super().logits(x)
        if not self.training:
            return logits
        scale = ops.softplus(ops.linear(wide(x), wide(self.noise)))
        noise = draw("normal", logits.shape, 0.0, 1.0, like=logits, dtype=logits.dtype)
        return logits + scale * noise


class SigmoidRouter(Router):
    r"""The k experts of the highest scores, each scored by itself.

    .. math:: s = \sigma(W x), \quad w_e = s_e / \sum_{j \in \mathrm{top}_k(s)} s_j

    Reference: DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Who works on what; see `Router.forward`."""
        logits = self.logits(x)
        scores = ops.sigmoid(logits)
        shares = scores / (scores.sum(axis=-1, keepdims=True) + 1e-20)
        chosen = ops.topk(scores, self.top_k)
        return by_item(chosen.indices, self._weights(chosen.values), logits, shares, mask)


class TopPRouter(Router):
    r"""As many of the most probable experts as have the probability p together.

    An item that is hard to place gets more experts. `top_k` is not used.

    Reference: Huang et al., "Harder Tasks Need More Experts: Dynamic Routing in MoE Models", 2024.
    """

    @property
    def choices(self) -> int:
        """All experts, for shares that are all alike."""
        return self.num_experts

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Who works on what; see `Router.forward`."""
        logits = self.logits(x)
        shares = ops.softmax(logits, axis=-1)
        ranked = ops.topk(shares, self.num_experts)
        before = ops.cumsum(ranked.values, axis=-1) - ranked.values
        needed = before < self.top_p
        experts = ops.where(needed, ranked.indices, self.num_experts)
        weights = self._weights(ops.where(needed, ranked.values, 0.0))
        return by_item(experts, weights, logits, shares, mask)


class ExpertChoiceRouter(Router):
    r"""Each expert takes the items that want it most: top_k * items / experts of them.

    The experts are in balance by construction. An item may get any number of experts, and that
    depends on the other items of the batch, later ones too: not for causal models.

    Reference: Zhou et al., "Mixture-of-Experts with Expert Choice Routing", 2022.
    """

    is_balanced = True

    @property
    def choices(self) -> int:
        """All experts may want one item."""
        return self.num_experts

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Who works on what; see `Router.forward`."""
        logits = self.logits(x)
        shares = ops.softmax(logits, axis=-1)
        scores = shares if mask is None else ops.where(ops.expand_dims(mask, -1), shares, 0.0)
        room = max(1, self.top_k * x.shape[0] // self.num_experts)
        chosen = ops.topk(ops.transpose(scores), room)
        return by_expert(chosen.indices, chosen.values, logits, shares, mask)


ROUTERS: dict[str, type[Router]] = {
    "softmax": SoftmaxRouter,
    "sigmoid": SigmoidRouter,
    "noisy": NoisyRouter,
    "top_p": TopPRouter,
    "expert_choice": ExpertChoiceRouter,
}
