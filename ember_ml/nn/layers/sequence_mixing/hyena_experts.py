"""Hyena experts."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase, HyenaState
from ember_ml.registry import register


@register("layers/hyena_experts", aliases=["hyena-experts"])
class HyenaExperts(HyenaBase):
    r"""Hyena whose channels belong to experts; a router weights a few of them at each position.

    .. math:: y_t = W_o \sum_{e \in \mathrm{top}_k(R x_t)} \mathrm{softmax}(R x_t)_e \, z_{t, e}

    z are the channels of Hyena before the output projection, as (expert_features, num_experts). All
    experts are computed, because a convolution needs all positions. The softmax is over the chosen
    experts only.

    The state holds the last max_length inputs of the convolution.

    Args:
        features: Number of input and output features.
        num_experts: Number of experts. Default: 8.
        expert_features: Number of channels per expert. Default: 16.
        top_k: Number of experts per position, at most `num_experts`. Default: 2.
        short_kernel_size: Number of taps of the short filters. Default: 3.
        filter_order: Width of the network that computes the long filters. Default: 16.
        max_length: Number of taps of the long filters. Default: 1280.

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
        require_at_most(self, top_k=top_k, num_experts=num_experts)
        self.num_experts = num_experts
        self.top_k = top_k
        inner = num_experts * expert_features
        sizes = short_kernel_size, filter_order, max_length
        super().__init__(features, inner, expert_features, inner, 1, *sizes)
        self.router = Dense(features, num_experts)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: HyenaState | None
    ) -> tuple[Tensor, HyenaState | None]:
        """Mix the sequence."""
        y, state = self.convolve(x, mask, state)
        return self._read_experts(ops.swapaxes(y, 1, 2), x), state

    def route(self, x: Tensor) -> Tensor:
        """Return the weights of the experts, (..., num_experts), zero if not chosen."""
        scores = upcast_half(self.router(x))
        chosen = ops.topk(ops.stop_gradient(scores), self.top_k).indices
        is_chosen = ops.any(ops.one_hot(chosen, self.num_experts) > 0, axis=-2)
        weights = ops.softmax(ops.where(is_chosen, scores, -float("inf")), axis=-1)
        return ops.cast(weights, x.dtype)

    def _read_experts(self, y: Tensor, x: Tensor) -> Tensor:
        """Combine the experts that x chooses: (..., inner) -> (..., features)."""
        experts = ops.reshape(y, (*y.shape[:-1], y.shape[-1] // self.num_experts, self.num_experts))
        weights = ops.expand_dims(self.region.enter(self.route(x)), -2)
        return self.read_out_step(ops.sum(experts * weights, axis=-1))

    def step(self, x: Tensor, state: HyenaState) -> tuple[Tensor, HyenaState]:
        """Return the output at one position and the states of the filters."""
        self.check_step(x, state)
        mixed, state = self.convolve_step(x, state)
        return self._read_experts(mixed, x), state
