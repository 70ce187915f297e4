"""Blocks around convolutions, state-space layers and RWKV."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.blocks.mixers import (
    FFTConvBlockConfig,
    HyenaBlockConfig,
    MambaBlockConfig,
    RWKVBlockConfig,
)
from ember_ml.nn.blocks.base import Block
from ember_ml.nn.blocks.channel import behind
from ember_ml.registry import create, register


def head_size(channels: int) -> int:
    """The largest size up to 64 that parts the channels into heads of equal size."""
    return next(size for size in range(min(64, channels), 0, -1) if channels % size == 0)


@register("blocks/mamba", config=MambaBlockConfig)
class MambaBlock(Block):
    """Mamba, and a channel mixer if asked for.

    Args:
        hidden_size: the features in and out.
        d_state: the numbers of state of each channel.
        d_conv: taps of the short filter.
        expand: channels inside, as a multiple of the features.
        version: 1, or 2 for Mamba-2, which is at its best with larger states.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023;
    Dao and Gu, "Transformers are SSMs", 2024.

    Example:
        >>> nn.blocks.MambaBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        version: int = 1,
        channel_mixer: Any = "none",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        norm_eps: float | None = None,
    ) -> None:
        name = "mamba" if version == 1 else "mamba2"
        options = {"d_state": d_state, "d_conv": d_conv, "expand": expand}
        if version == 2:
            options["head_dim"] = head_size(expand * hidden_size)
        mixer = create(f"layers/{name}", hidden_size, **options)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
            norm_eps=norm_eps,
        )


@register("blocks/hyena", config=HyenaBlockConfig)
class HyenaBlock(Block):
    """Hyena, and a channel mixer.

    Args:
        hidden_size: the features in and out.
        num_heads: the heads of multi-head Hyena; the plain one if not given.
        max_length: taps of the long filters.
        filter_order: the width of the network that makes the filters.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.

    Example:
        >>> nn.blocks.HyenaBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int | None = None,
        max_length: int = 1280,
        filter_order: int = 4,
        channel_mixer: Any = "swiglu",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        options: dict[str, Any] = {"max_length": max_length, "filter_order": filter_order}
        if num_heads is not None:
            options["num_heads"] = num_heads
        name = "hyena" if num_heads is None else "multi_head_hyena"
        mixer = create(f"layers/{name}", hidden_size, **options)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )


@register("blocks/fft_conv", config=FFTConvBlockConfig)
class FFTConvBlock(Block):
    """A long convolution, and a channel mixer.

    Args:
        hidden_size: the features in and out.
        max_length: taps of the filters.
        channel_mixer: the layer behind it: a name, {"type": ...}, or "none".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.FFTConvBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        max_length: int = 1280,
        channel_mixer: Any = "swiglu",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        mixer = create("layers/fft_conv", hidden_size, max_length=max_length)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, *behind(channel_mixer)),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )


@register("blocks/rwkv", config=RWKVBlockConfig)
class RWKVBlock(Block):
    """The time mixer and the channel mixer of RWKV.

    Args:
        hidden_size: the features in and out.
        num_heads: how many heads the state has.
        inner_size: features inside the channel mixer; 4 times the others if not given.
        version: 5 or 6.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.blocks.RWKVBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int = 8,
        inner_size: int | None = None,
        version: int = 6,
        norm: str = "layer_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
    ) -> None:
        mixer = create(f"layers/rwkv{version}_time_mixer", hidden_size, num_heads=num_heads)
        channels = create(f"layers/rwkv{version}_channel_mixer", hidden_size, inner_size)
        super().__init__(
            hidden_size=hidden_size,
            layers=(mixer, channels),
            norm=norm,
            dropout=dropout,
            stochastic_depth=stochastic_depth,
        )
