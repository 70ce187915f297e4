"""Jamba: Mamba, attention without positions, and mixtures of experts."""

from __future__ import annotations

import math
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import GatedLinear, MoE
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.decoder import Defaults, norm_pieces, read_decoder
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Piece
from ember_ml.nn.models.convert.mamba import mixer_pieces, read_rank
from ember_ml.nn.models.convert.mixtral import expert_pieces, read_experts
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel


def config(settings: Settings) -> Config:
    """Return the config of a Jamba."""
    layers = range(settings.layers())
    mamba = _read_mamba(settings)
    has_attention = _read_turns(settings, "attn_layer", 8, 4)
    has_experts = _read_turns(settings, "expert_layer", 2, 1)
    experts = read_experts(settings, "num_experts", 16, normalize=False)
    many = experts["num_experts"] > 1
    return read_decoder(
        settings,
        Defaults(kv_heads=8, max_length=262144),
        rope=False,
        attention={"positions": "none"},
        mixers={at: mamba for at in layers if not has_attention(at)},
        inner={at: experts for at in layers if many and has_experts(at)},
    )


def _read_turns(settings: Settings, name: str, period: int, offset: int) -> Any:
    """Return a function from the index of a layer to whether it is one of those of a period."""
    period = settings.size(f"{name}_period", period)
    given = settings.get(f"{name}_offset", offset)
    return lambda at: at % period == given


def _read_mamba(settings: Settings) -> dict[str, Any]:
    settings.expect("hidden_act", "silu", "silu")
    settings.repeats("mamba_inner_layernorms", True)
    settings.get("n_ctx")  # it repeats max_position_embeddings
    return {
        "type": "layers/mamba",
        "features": settings.size("hidden_size"),
        "d_state": settings.size("mamba_d_state", 16),
        "d_conv": settings.size("mamba_d_conv", 4),
        "expand": settings.size("mamba_expand", 2),
        "dt_rank": read_rank(settings, "mamba_dt_rank"),
        "bias": settings.flag("mamba_proj_bias", False),
        "conv_bias": settings.flag("mamba_conv_bias", True),
        "select_norm": "learned",
        "select_norm_eps": settings.number("rms_norm_eps", 1e-6),
    }


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Jamba."""
    mixers: list[Any] = [first.layer for first, _ in pairs(model)]
    inner: list[Any] = [second.layer for _, second in pairs(model)]
    common = decoder.values(model)
    for name in ("rope_theta", "rope_parameters"):
        del common[name]
    mambas = [layer for layer in mixers if isinstance(layer, Mamba)]
    experts = [layer for layer in inner if isinstance(layer, MoE)]
    return {
        **common,
        **_turns("attn_layer", [isinstance(layer, SelfAttention) for layer in mixers]),
        **_turns("expert_layer", [isinstance(layer, MoE) for layer in inner]),
        **(_mamba_values(mambas[0]) if mambas else {}),
        "num_experts": experts[0].router.num_experts if experts else 1,
        "num_experts_per_tok": experts[0].router.top_k if experts else 1,
        "router_aux_loss_coef": experts[0].balance_weight if experts else 0.0,
    }


def _turns(name: str, turns: list[bool]) -> dict[str, Any]:
    """Return the period and offset of layers, as far as the first two of them determine it."""
    places = [at for at, has in enumerate(turns) if has]
    period = places[1] - places[0] if len(places) > 1 else len(turns) + 1
    offset = places[0] if places else len(turns)
    return {f"{name}_period": max(period, offset + 1), f"{name}_offset": offset}


def _mamba_values(layer: Mamba) -> dict[str, Any]:
    return {
        "mamba_d_state": layer.d_state,
        "mamba_d_conv": layer.conv.kernel_size,
        "mamba_expand": math.ceil(layer.inner / layer.features),
        "mamba_dt_rank": layer.dt_rank,
        "mamba_proj_bias": layer.in_proj.bias is not None,
        "mamba_conv_bias": layer.conv.bias is not None,
    }


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = norm_pieces(model.backbone.norm, "final_layernorm")
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        pieces += norm_pieces(first.norm, f"{name}.input_layernorm")
        pieces += norm_pieces(second.norm, f"{name}.pre_ff_layernorm")
        pieces += _mixer(first.layer, name)
        pieces += _inner(second.layer, f"{name}.feed_forward")
    return pieces


def _mixer(layer: Any, name: str) -> list[Piece]:
    if isinstance(layer, SelfAttention):
        return decoder.attention_pieces(layer, f"{name}.self_attn")
    name = f"{name}.mamba"
    return [
        *mixer_pieces(layer, name),
        *norm_pieces(layer.dt_norm, f"{name}.dt_layernorm"),
        *norm_pieces(layer.write_norm, f"{name}.b_layernorm"),
        *norm_pieces(layer.read_norm, f"{name}.c_layernorm"),
    ]


def _inner(layer: Any, name: str) -> list[Piece]:
    if isinstance(layer, GatedLinear):
        return decoder.inner_pieces(layer, name)
    parts = ("gate_proj", "up_proj", "down_proj")
    return expert_pieces(layer, f"{name}.router", f"{name}.experts", parts)


JAMBA = Family(
    title="Jamba",
    architecture="JambaForCausalLM",
    config=config,
    values=values,
    pieces=pieces,
    kinds=((SelfAttention, Mamba), (GatedLinear, MoE)),
)
