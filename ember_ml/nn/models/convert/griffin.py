"""RecurrentGemma: the recurrent blocks of Griffin, and attention with a window."""

from __future__ import annotations

import math
import struct
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import GatedLinear
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.layers.sequence_mixing.rg_lru import RGLRU
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.activations import read_activation
from ember_ml.nn.models.convert.decoder import Defaults, dense_pieces, norm_pieces, read_decoder
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Filters, Piece, Shifted, Stacked, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel

ACTIVATION = ("hidden_activation", "gelu_pytorch_tanh")


def config(settings: Settings) -> Config:
    """Return the config of a RecurrentGemma."""
    width, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    window = settings.size("attention_window_size", settings.get("sliding_window", 2048)) - 1
    settings.repeats("head_dim", width // heads)
    settings.repeats("embeddings_scale_by_sqrt_dim", True)
    inner = settings.size("intermediate_size", 3 * width)
    if inner % 2:
        settings.problems.append(f"intermediate_size={inner} is not supported, only an even number")
    recurrent = {
        "type": "layers/rg_lru",
        "features": width,
        "inner_features": settings.size("lru_width", width),
        "num_heads": heads,
        "d_conv": settings.size("conv1d_width", 4),
        "activation": read_activation(settings, *ACTIVATION),
    }
    usual = settings.get("_block_types", ["recurrent", "recurrent", "attention"])
    turns = settings.get("block_types", usual)
    kinds = _kinds(settings, turns)
    return read_decoder(
        settings,
        Defaults(
            max_length=8192,
            activation=ACTIVATION,
            rope_share=0.5,
            rope_types=("default",),
            tie_weights=True,
        ),
        attention={"window": window, "out_bias": True},
        attention_bias=settings.flag("attention_bias", False),
        inner_bias=True,
        inner_size=max(inner // 2, 1),
        mixers={at: recurrent for at, kind in enumerate(kinds) if kind == "recurrent"},
        model={
            "embedding_scale": bfloat16(math.sqrt(width)),
            "logit_softcap": settings.number("logits_soft_cap", 30.0),
        },
    )


def _kinds(settings: Settings, turns: Any) -> list[str]:
    """Return the type of each layer, which repeat."""
    known = ("recurrent", "attention")
    if not isinstance(turns, list) or not turns or not all(kind in known for kind in turns):
        settings.problems.append(f"block_types={turns!r:.80} must list {' and '.join(known)}")
        turns = ["attention"]
    count = settings.layers()
    return [turns[at % len(turns)] for at in range(count)]


def bfloat16(value: float) -> float:
    """Return the nearest bfloat16 number, as transformers rounds the embedding scale."""
    bits = int.from_bytes(struct.pack(">f", value), "big")
    bits += 0x7FFF + ((bits >> 16) & 1)
    rounded: float = struct.unpack(">f", (bits >> 16 << 16).to_bytes(4, "big"))[0]
    return rounded


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a RecurrentGemma."""
    mixers: list[Any] = [first.layer for first, _ in pairs(model)]
    common = decoder.values(model)
    common["hidden_activation"] = common.pop("hidden_act")
    common["intermediate_size"] *= 2
    attention = next(layer for layer in mixers if isinstance(layer, SelfAttention))
    recurrent = [layer for layer in mixers if isinstance(layer, RGLRU)]
    part = attention.rope_features / attention.head_features
    common["rope_parameters"] = {**common["rope_parameters"], "partial_rotary_factor": part}
    kinds = ["recurrent" if isinstance(layer, RGLRU) else "attention" for layer in mixers]
    return {
        **common,
        "partial_rotary_factor": part,
        "attention_bias": attention.qkv.bias is not None,
        "attention_window_size": None if attention.window is None else attention.window + 1,
        "lru_width": recurrent[0].inner if recurrent else model.backbone.features,
        "conv1d_width": recurrent[0].conv.kernel_size if recurrent else 4,
        "logits_soft_cap": model.logit_softcap,
        "block_types": kinds,
    }


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    norm = Shifted(1.0)
    pieces = norm_pieces(model.backbone.norm, "final_norm", norm)
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        pieces += norm_pieces(first.norm, f"{name}.temporal_pre_norm", norm)
        pieces += norm_pieces(second.norm, f"{name}.channel_pre_norm", norm)
        mixer = f"{name}.temporal_block"
        if isinstance(first.layer, RGLRU):
            pieces += _recurrent(first.layer, mixer)
        else:
            pieces += decoder.attention_pieces(first.layer, mixer)
        pieces += decoder.inner_pieces(second.layer, f"{name}.mlp_block")
    return pieces


def _recurrent(layer: RGLRU, name: str) -> list[Piece]:
    rows = Stacked(layer.inner, layer.inner)
    unit = f"{name}.rg_lru"
    return [
        *dense_pieces(layer.in_proj, f"{name}.linear_x", f"{name}.linear_y", layout=rows),
        *dense_pieces(layer.out_proj, f"{name}.linear_out"),
        *pieces_of(layer.conv.weight, f"{name}.conv_1d.weight", layout=Filters()),
        *pieces_of(layer.conv.bias, f"{name}.conv_1d.bias"),
        *pieces_of(layer.decay, f"{unit}.recurrent_param"),
        *pieces_of(layer.input_gate, f"{unit}.input_gate_weight"),
        *pieces_of(layer.input_bias, f"{unit}.input_gate_bias"),
        *pieces_of(layer.decay_gate, f"{unit}.recurrent_gate_weight"),
        *pieces_of(layer.decay_bias, f"{unit}.recurrent_gate_bias"),
    ]


RECURRENT_GEMMA = Family(
    title="RecurrentGemma",
    architecture="RecurrentGemmaForCausalLM",
    config=config,
    values=values,
    pieces=pieces,
    kinds=((SelfAttention, RGLRU), (GatedLinear,)),
)
