"""Hyena with experts."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.fft_conv import push
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase
from ember_ml.registry import register


@register("layers/hyena_experts", aliases=["hyena-experts"])
class HyenaExperts(HyenaBase):
    r"""Hyena whose channels belong to experts, of which a router weighs a few at each position.

    .. math:: y_t = W_o \sum_{e \in \mathrm{top}_k(R x_t)} \mathrm{softmax}(R x_t)_e \, z_{t, e}

    z are the channels of Hyena before its last projection, as (expert_features, num_experts). A
    convolution needs all positions of all experts, so that all of them are computed; the router
    decides which are read. The softmax is over the chosen ones only.

    The form that goes step by step keeps the last max_length inputs of the convolution.

    Args:
        features: the number of features in and out.
        num_experts: how many there are.
        expert_features: the channels of an expert.
        top_k: how many experts a position reads.
        short_kernel_size: taps of the short filters.
        filter_order: the width of the network that makes the long filters.
        max_length: the number of taps of the long filters.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/hyena-experts", features=8, num_experts=4)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.
    """

    def __init__(
        self,
        features: Size,
        num_experts: Size = 8,
        expert_features: Size = 16,
        top_k: Size = 2,
        short_kernel_size: Size = 3,
        filter_order: Size = 16,
        max_length: Size = 1280,
    ) -> None:
        if top_k > num_experts:
            raise ArgumentError(
                f"HyenaExperts: top_k={top_k} must not be above num_experts={num_experts}"
            )
        self.num_experts = num_experts
        self.top_k = top_k
        inner = num_experts * expert_features
        super().__init__(
            features, inner, expert_features, inner, 1, short_kernel_size, filter_order, max_length
        )
        self.router = Dense(features, num_experts)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        return self._choose(ops.swapaxes(self.mix(x, mask), 1, 2), x)

    def route(self, x: Tensor) -> Tensor:
        """The weights of the experts, (..., num_experts), zero for those not chosen."""
        scores = ops.cast(self.router(x), "float32")
        chosen = ops.topk(ops.stop_gradient(scores), self.top_k).indices
        kept = ops.any(ops.one_hot(chosen, self.num_experts) > 0, axis=-2)
        weights = ops.softmax(ops.where(kept, scores, -float("inf")), axis=-1)
        return ops.cast(weights, x.dtype)

    def _choose(self, y: Tensor, x: Tensor) -> Tensor:
        """(..., inner) -> (..., features), by the experts that x chooses."""
        experts = ops.reshape(y, (*y.shape[:-1], -1, self.num_experts))
        weights = ops.expand_dims(self.route(x), -2)
        return self.out_proj(ops.sum(experts * weights, axis=-1))

    def initial_state(self, batch: int) -> State:
        """No inputs yet: of the short filters, and of the long ones."""
        return self.short.initial_state(batch), self.window(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the last inputs."""
        (query, key, value), short = self.project_step(x, state[0])
        seen = push(key * value, state[1])
        mixed = ops.einsum("btc,ct->bc", seen, self.taps())
        return self._choose(query * mixed, x), (short, seen[:, 1:])
