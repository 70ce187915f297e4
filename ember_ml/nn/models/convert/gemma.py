"""Gemma 2 and Gemma 3."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import GatedLinear
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.decoder import FULL, SLIDING, Defaults, Names, read_decoder
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.rope import read_rope, write_rope
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel

NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
GEMMA2_DEFAULTS = Defaults(
    kv_heads=4,
    head_features=256,
    max_length=8192,
    activation=("hidden_activation", "gelu_pytorch_tanh"),
    tie_weights=True,
)
GEMMA3_DEFAULTS = Defaults(
    kv_heads=4,
    head_features=256,
    max_length=131072,
    activation=("hidden_activation", "gelu_pytorch_tanh"),
    tie_weights=True,
)


def _options(
    settings: Settings, attention_limit: float | None, logit_limit: float | None
) -> dict[str, Any]:
    """Return the arguments of `read_decoder` that both families have."""
    settings.expect("use_bidirectional_attention", False, False)
    settings.get("hidden_act")  # `hidden_activation` replaces it
    settings.repeats("sliding_window_size", settings.get("sliding_window"))
    softcap = settings.limit("attn_logit_softcapping", attention_limit)
    cap = settings.limit("final_logit_softcapping", logit_limit)
    scale = settings.number("query_pre_attn_scalar", 256)
    return {
        "placement": "sandwich",
        "attention_bias": settings.flag("attention_bias", False),
        "attention": {"scale": max(scale, 1e-9) ** -0.5, "softcap": softcap},
        "model": {
            "embedding_scale": math.sqrt(settings.size("hidden_size")),
            "logit_softcap": cap,
        },
    }


def gemma2_config(settings: Settings) -> Config:
    """Return the config of a Gemma 2: every other layer has a window, and scores are limited."""
    kinds = decoder.read_layer_types(settings, lambda at: FULL if at % 2 else SLIDING)
    windows = decoder.windows_by_layer(settings, kinds, decoder.read_window(settings, 4096))
    return read_decoder(settings, GEMMA2_DEFAULTS, by_layer=windows, **_options(settings, 50, 30))


def gemma3_config(settings: Settings) -> Config:
    """Return the config of a Gemma 3: layers with and without a window differ in their angles."""
    pattern = settings.size("sliding_window_pattern", 6)
    kinds = decoder.read_layer_types(settings, lambda at: SLIDING if (at + 1) % pattern else FULL)
    window = decoder.read_window(settings, 4096)
    size = decoder.read_head_features(settings, GEMMA3_DEFAULTS)
    bases = {FULL: settings.number("rope_theta", 1e6)}
    bases[SLIDING] = settings.number("rope_local_base_freq", 1e4)
    rope = {kind: _read_rope(settings, size, kind, bases[kind]) for kind in bases}
    by_layer = [
        {**rope.get(kind, {}), "window": window if kind == SLIDING else None} for kind in kinds
    ]
    options = _options(settings, None, None)
    options |= {"rope": False, "qk_norm": "head", "by_layer": by_layer}
    return read_decoder(settings, GEMMA3_DEFAULTS, **options)


def _read_rope(settings: Settings, size: int, kind: str, base: float) -> dict[str, Any]:
    """Return the rotary embeddings of a type of layers; older files scale full attention only."""
    given = settings.get("rope_parameters")
    if given is None:
        scaling = settings.get("rope_scaling", {}) if kind == FULL else {}
        given = {kind: {**scaling, "rope_theta": base}}
    length = settings.size("max_position_embeddings", GEMMA3_DEFAULTS.max_length)
    own = Settings(settings.where, {"rope_parameters": given, "max_position_embeddings": length})
    options = read_rope(own, size, base=base, field=kind)
    settings.problems += own.problems
    return options


def _values(model: LanguageModel) -> dict[str, Any]:
    attention: Any = pairs(model)[0][0].layer
    values = decoder.values(model)
    values["hidden_activation"] = values.pop("hidden_act")
    scale = attention.scale or attention.head_features**-0.5
    return {
        **values,
        **decoder.write_windows(model),
        "attention_bias": attention.qkv.bias is not None,
        "query_pre_attn_scalar": round(scale**-2),
        "attn_logit_softcapping": attention.softcap,
        "final_logit_softcapping": model.logit_softcap,
    }


def gemma3_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Gemma 3."""
    values = _values(model)
    for field in ("rope_theta", "rope_parameters"):
        del values[field]
    layers: list[Any] = [first.layer for first, _ in pairs(model)]
    last = {FULL if layer.window is None else SLIDING: layer for layer in layers}
    rope = {kind: write_rope(layer) for kind, layer in last.items()}
    return {**values, "rope_parameters": rope}


GEMMA2 = Family(
    title="Gemma 2",
    architecture="Gemma2ForCausalLM",
    config=gemma2_config,
    values=_values,
    pieces=partial(decoder.pieces, names=Names(NORMS, shift=1.0)),
    kinds=((SelfAttention,), (GatedLinear,)),
)
GEMMA3 = Family(
    title="Gemma 3 (text)",
    architecture="Gemma3ForCausalLM",
    config=gemma3_config,
    values=gemma3_values,
    pieces=GEMMA2.pieces,
    kinds=GEMMA2.kinds,
)
