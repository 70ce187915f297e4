"""Blocks of convolutions, state-space models and RWKV."""

from __future__ import annotations

from typing import Literal, Unpack

from ember_ml.configs.fields import NormName, Size
from ember_ml.nn.blocks.base import (
    Block,
    BlockOptions,
    OptionalLayers,
    ResidualOptions,
    optional_layers,
)
from ember_ml.registry import create, register


def head_size(channels: int) -> int:
    """Return the largest divisor of the number of channels that is at most 64."""
    return next(size for size in range(min(64, channels), 0, -1) if channels % size == 0)


@register("blocks/mamba")
class MambaBlock(Block):
    """Mamba block, with an optional channel mixer.

    Args:
        hidden_size: Number of input and output features.
        d_state: State size of each channel. Default: the layer's own (4 for Mamba, 16 for
            Mamba-2).
        d_conv: Kernel size of the short convolution.
        expand: Number of inner channels, as a multiple of `hidden_size`.
        version: 1 for Mamba, 2 for Mamba-2.
        channel_mixer: Layer after the mixer: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023;
    Dao and Gu, "Transformers are SSMs", 2024.

    Example:
        >>> nn.blocks.MambaBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        d_state: Size | None = None,
        d_conv: Size = 4,
        expand: Size = 2,
        version: Literal[1, 2] = 1,
        channel_mixer: OptionalLayers = "none",
        **options: Unpack[BlockOptions],
    ) -> None:
        name = "mamba" if version == 1 else "mamba2"
        sizes = {"d_conv": d_conv, "expand": expand}
        if d_state is not None:
            sizes["d_state"] = d_state
        if version == 2:
            sizes["head_dim"] = head_size(expand * hidden_size)
        mixer = create(f"layers/{name}", hidden_size, **sizes)
        layers = (mixer, *optional_layers(channel_mixer))
        super().__init__(hidden_size=hidden_size, layers=layers, **options)


@register("blocks/hyena")
class HyenaBlock(Block):
    """Hyena block: a Hyena layer, then a channel mixer.

    Args:
        hidden_size: Number of input and output features.
        num_heads: Number of heads of multi-head Hyena. Default: Hyena without heads.
        max_length: Length of the long filters.
        filter_order: Width of the network that generates the filters. Default: the layer's own (4,
            or 2 with heads).
        channel_mixer: Layer after the mixer: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.

    Example:
        >>> nn.blocks.HyenaBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        num_heads: Size | None = None,
        max_length: Size = 1280,
        filter_order: Size | None = None,
        channel_mixer: OptionalLayers = "swiglu",
        **options: Unpack[BlockOptions],
    ) -> None:
        sizes = {"num_heads": num_heads, "max_length": max_length, "filter_order": filter_order}
        name = "hyena" if num_heads is None else "multi_head_hyena"
        given = {key: size for key, size in sizes.items() if size is not None}
        mixer = create(f"layers/{name}", hidden_size, **given)
        layers = (mixer, *optional_layers(channel_mixer))
        super().__init__(hidden_size=hidden_size, layers=layers, **options)


@register("blocks/fft_conv")
class FFTConvBlock(Block):
    """Long convolution, then a channel mixer.

    Args:
        hidden_size: Number of input and output features.
        max_length: Length of the filters.
        channel_mixer: Layer after the mixer: a name, {"type": ...} or "none".
        options: `norm`, `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Example:
        >>> nn.blocks.FFTConvBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        max_length: Size = 1280,
        channel_mixer: OptionalLayers = "swiglu",
        **options: Unpack[BlockOptions],
    ) -> None:
        mixer = create("layers/fft_conv", hidden_size, max_length=max_length)
        layers = (mixer, *optional_layers(channel_mixer))
        super().__init__(hidden_size=hidden_size, layers=layers, **options)


@register("blocks/rwkv")
class RWKVBlock(Block):
    """RWKV block: its time mixer, then its channel mixer.

    Args:
        hidden_size: Number of input and output features.
        num_heads: Number of heads of the state.
        inner_size: Hidden features of the channel mixer. Default: 4 times `hidden_size`.
        version: 5 or 6.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        options: `dropout`, `stochastic_depth` and `norm_eps`, as in `Block`.

    Shape: (batch, time, hidden_size) -> (batch, time, hidden_size).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.blocks.RWKVBlock(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        hidden_size: Size,
        num_heads: Size = 8,
        inner_size: Size | None = None,
        version: Literal[5, 6] = 6,
        norm: NormName = "layer_norm",
        **options: Unpack[ResidualOptions],
    ) -> None:
        layers = (
            create(f"layers/rwkv{version}_time_mixer", hidden_size, num_heads=num_heads),
            create(f"layers/rwkv{version}_channel_mixer", hidden_size, inner_size),
        )
        super().__init__(hidden_size=hidden_size, layers=layers, norm=norm, **options)
