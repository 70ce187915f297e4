"""Blocks of experts, and of several mixers."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import RouterName, Size
from ember_ml.configs.patterns import LayersField, items_of, longest, sized
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks.base import (
    Block,
    BlockOptions,
    OptionalLayers,
    check_layers,
    optional_layers,
)
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import State
from ember_ml.registry import build, create, register


@register("blocks/parallel", config_name="ParallelConfig")
class ParallelMixers(SequenceMixer):
    r"""Weighted sum of several mixers of the same input, with a learned weight per feature.

    .. math:: y = \sum_i g_i \odot f_i(x)

    The initial weights are 1 / number of mixers.

    Args:
        hidden_size: Number of input and output features.
        layers: A pattern, or a list of names, {"type": ...} and modules.
        max_length: Maximum sequence length, for mixers that need it.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.ParallelMixers(8, "attention gru")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self, hidden_size: Size, layers: LayersField, max_length: Size | None = None
    ) -> None:
        self.features = hidden_size
        self.layers: list[Module] = [
            build("", sized(layer, hidden_size, **longest(max_length)))
            for layer in items_of(layers)
        ]
        uniform = ops.full((len(self.layers), hidden_size), 1.0 / len(self.layers))
        self.weights = Parameter(uniform, decay=False)

    @staticmethod
    def check_config(config: Any) -> None:
        """Check the layers with the width."""
        if not items_of(config.layers):
            raise ValueError("layers must name at least one mixer")
        check_layers(config)

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether all mixers are causal."""
        return sequence_module.all_causal(self.layers)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether any mixer uses `timespans`."""
        return sequence_module.any_uses_timespans(self.layers)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the weighted sum of the mixers' outputs; with a state, also their next states.

        Args:
            x: Tensor of shape (batch, time, hidden_size).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for mixers that use it.
            state: States of the mixers before the first position. Default: the start of the
                sequence.
        """
        self.check_sequence(x, mask)
        if state is None:
            outputs = [sequence_module.run(layer, x, mask, timespans) for layer in self.layers]
            return self._weighted_sum(outputs)
        return self._sum_with_states(
            [
                sequence_module.extend(layer, x, before, mask, timespans)
                for layer, before in zip(self.layers, state, strict=True)
            ]
        )

    def initial_state(self, batch: int) -> State:
        """Return the states of the mixers before the first position."""
        return sequence_module.initial_states(self.layers, batch)

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at one position, and the next states of the mixers."""
        return self._sum_with_states(
            [
                sequence_module.step(layer, x, before, timespan)
                for layer, before in zip(self.layers, state, strict=True)
            ]
        )

    def _sum_with_states(self, results: list[tuple[Tensor, State]]) -> tuple[Tensor, State]:
        """Return the weighted sum of outputs, and the states."""
        return self._weighted_sum([y for y, _ in results]), tuple(after for _, after in results)

    def _weighted_sum(self, outputs: list[Tensor]) -> Tensor:
        total = outputs[0] * self.weights[0]
        for at, y in enumerate(outputs[1:], start=1):
            total = total + y * self.weights[at]
        return total


@register("blocks/moe")
class MoEBlock(Block):
    """Mixer, then a mixture of experts.

    Args:
        hidden_size: Number of input and output features.
        mixer: Mixer before the experts: a name, {"type": ...} or "none".
        num_experts: Number of experts.
        top_k: Number of experts per position.
        expert: Layer of each expert: "mlp", "swiglu" or any other.
        inner_size: Hidden features of each expert. Default: the layer's own.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Shazeer et al., "Outrageously Large Neural Networks", 2017.

    Example:
        >>> nn.blocks.MoEBlock(8, {"type": "attention"}, num_experts=4)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        mixer: OptionalLayers = "mh_attention",
        num_experts: Size = 8,
        top_k: Size = 2,
        expert: Any = "swiglu",
        inner_size: Size | None = None,
        router: RouterName = "softmax",
        **options: Unpack[BlockOptions],
    ) -> None:
        experts = create(
            "layers/moe", hidden_size, num_experts, top_k, expert, inner_size, router=router
        )
        layers = (*optional_layers(mixer), experts)
        super().__init__(hidden_size=hidden_size, layers=layers, **options)


@register("blocks/hybrid")
class HybridBlock(Block):
    """Several mixers, in parallel or in sequence, with channel mixers after them.

    Args:
        hidden_size: Number of input and output features.
        mixers: A pattern, or a list of names and {"type": ...}.
        arrangement: "parallel": a learned weighted sum of all mixers, then one channel mixer;
            "striped": one mixer after the other, each followed by a channel mixer.
        max_length: Maximum sequence length, for mixers that need it.
        channel_mixer: Layer after the mixers: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024; Dong et
    al., "Hymba: A Hybrid-head Architecture for Small Language Models", 2024.

    Example:
        >>> nn.blocks.HybridBlock(8, "attention gru", "striped")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        mixers: LayersField = "mh_attention mamba",
        arrangement: Literal["parallel", "striped"] = "parallel",
        max_length: Size | None = None,
        channel_mixer: OptionalLayers = "swiglu",
        **options: Unpack[BlockOptions],
    ) -> None:
        stages = (
            [ParallelMixers(hidden_size, mixers, max_length)]
            if arrangement == "parallel"
            else [sized(mixer, hidden_size, **longest(max_length)) for mixer in items_of(mixers)]
        )
        layers = [layer for stage in stages for layer in (stage, *optional_layers(channel_mixer))]
        super().__init__(hidden_size=hidden_size, layers=layers, **options)
