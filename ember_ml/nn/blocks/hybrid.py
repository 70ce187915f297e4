"""Blocks of experts, and of several mixers."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.blocks.mixers import HybridBlockConfig, MoEBlockConfig, ParallelConfig
from ember_ml.configs.patterns import items_of, longest, sized
from ember_ml.nn import sequence_module
from ember_ml.nn.blocks.base import Block
from ember_ml.nn.blocks.channel import behind
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import State
from ember_ml.registry import build, create, register


@register("blocks/parallel", config=ParallelConfig)
class ParallelMixers(SequenceMixer):
    r"""Several mixers of the same input, added up with learned weights of each feature.

    .. math:: y = \sum_i g_i \odot f_i(x)

    The weights begin at 1 over the number of mixers.

    Args:
        hidden_size: the features in and out.
        layers: a pattern, or a list of names, {"type": ...} and modules.
        max_length: the longest sequence, for the mixers that need to know.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.ParallelMixers(8, "attention gru")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(self, hidden_size: int, layers: Any, max_length: int | None = None) -> None:
        self.features = hidden_size
        self.layers: list[Module] = [
            build("", sized(layer, hidden_size, **longest(max_length)))
            for layer in items_of(layers)
        ]
        even = ops.full((len(self.layers), hidden_size), 1.0 / len(self.layers))
        self.weights = Parameter(even, decay=False)

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether no layer looks ahead."""
        return sequence_module.all_causal(self.layers)

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a layer minds the time between positions."""
        return sequence_module.any_uses_timespans(self.layers)

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """What the mixers give, added up."""
        self.check_sequence(x, mask)
        return self._added(
            [sequence_module.run(layer, x, mask, timespans) for layer in self.layers]
        )

    def initial_state(self, batch: int) -> State:
        """The states of the mixers."""
        return sequence_module.initial_states(self.layers, batch)

    def step(self, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """One position through all mixers, and their states after it."""
        made = [
            sequence_module.step(layer, x, before, timespan)
            for layer, before in zip(self.layers, state, strict=True)
        ]
        return self._added([y for y, _ in made]), tuple(after for _, after in made)

    def _added(self, outputs: list[Tensor]) -> Tensor:
        total = outputs[0] * self.weights[0]
        for at, y in enumerate(outputs[1:], start=1):
            total = total + y * self.weights[at]
        return total


@register("blocks/moe", config=MoEBlockConfig)
class MoEBlock(Block):
    """A mixer, and experts of which each position uses a few.

    Args:
        hidden_size: the features in and out.
        mixer: the mixer before the experts: a name, {"type": ...}, or "none".
        num_experts: how many experts there are.
        top_k: how many of them work on a position.
        expert: "mlp", "swiglu" ..., or any layer.
        inner_size: features inside an expert.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Shazeer et al., "Outrageously Large Neural Networks", 2017.

    Example:
        >>> nn.blocks.MoEBlock(8, {"type": "attention"}, num_experts=4)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        mixer: Any = "mh_attention",
        num_experts: int = 8,
        top_k: int = 2,
        expert: Any = "swiglu",
        inner_size: int | None = None,
        router: str = "softmax",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        experts = create(
            "layers/moe", hidden_size, num_experts, top_k, expert, inner_size, router=router
        )
        super().__init__(
            hidden_size=hidden_size,
            layers=(*behind(mixer), experts),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )


@register("blocks/hybrid", config=HybridBlockConfig)
class HybridBlock(Block):
    """Several mixers side by side or in turn, with channel mixers behind.

    Args:
        hidden_size: the features in and out.
        mixers: a pattern, or a list of names and {"type": ...}.
        arrangement: "parallel": all read the same, and what they give is added up with learned
            weights; "striped": one after the other, each with a channel mixer behind it.
        max_length: the longest sequence, for the mixers that need to know.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024; Dong et
    al., "Hymba: A Hybrid-head Architecture for Small Language Models", 2024.

    Example:
        >>> nn.blocks.HybridBlock(8, "attention gru", "striped")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        mixers: Any = "mh_attention mamba",
        arrangement: str = "parallel",
        max_length: int | None = None,
        channel_mixer: Any = "swiglu",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        layers: list[Any] = []
        if arrangement == "parallel":
            layers = [ParallelMixers(hidden_size, mixers, max_length), *behind(channel_mixer)]
        else:
            for mixer in items_of(mixers):
                layers += [
                    sized(mixer, hidden_size, **longest(max_length)),
                    *behind(channel_mixer),
                ]
        super().__init__(
            hidden_size=hidden_size,
            layers=layers,
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )
