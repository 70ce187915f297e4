"""Llama and its relatives: Mistral, Qwen2, Qwen3, SmolLM3, OLMo 2, Phi-3."""

from __future__ import annotations

from functools import partial
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import GatedLinear
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.decoder import FULL, SLIDING, Defaults, Names, read_decoder
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel

KINDS = ((SelfAttention,), (GatedLinear,))
PIECES = partial(decoder.pieces, names=Names())


def _biases(model: LanguageModel) -> dict[str, Any]:
    first, second = pairs(model)[0]
    attention: Any = first.layer
    inner: Any = second.layer
    return {
        "attention_bias": attention.qkv.bias is not None,
        "mlp_bias": inner.expand.bias is not None,
    }


def llama_config(settings: Settings) -> Config:
    """Return the config of a Llama."""
    return read_decoder(
        settings,
        Defaults(),
        attention_bias=settings.flag("attention_bias", False),
        inner_bias=settings.flag("mlp_bias", False),
    )


def llama_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Llama."""
    return {**decoder.values(model), **_biases(model)}


LLAMA = Family(
    title="Llama",
    architecture="LlamaForCausalLM",
    config=llama_config,
    values=llama_values,
    pieces=PIECES,
    kinds=KINDS,
)


def mistral_config(settings: Settings) -> Config:
    """Return the config of a Mistral, which may have a sliding window."""
    window = decoder.read_window(settings, 4096)
    attention = {} if window is None else {"window": window}
    return read_decoder(settings, Defaults(kv_heads=8, max_length=131072), attention=attention)


def mistral_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Mistral."""
    window = decoder.write_windows(model)["sliding_window"]
    return {**decoder.values(model), "sliding_window": window}


MISTRAL = Family(
    title="Mistral",
    architecture="MistralForCausalLM",
    config=mistral_config,
    values=mistral_values,
    pieces=PIECES,
    kinds=KINDS,
)


def _qwen_windows(settings: Settings) -> list[dict[str, Any]]:
    uses = settings.flag("use_sliding_window", False)
    window = decoder.read_window(settings, 4096)
    first = settings.get("max_window_layers", 28)
    kinds = decoder.read_layer_types(
        settings, lambda at: SLIDING if uses and window is not None and at >= first else FULL
    )
    return decoder.windows_by_layer(settings, kinds, window if uses else None)


def _qwen_values(model: LanguageModel) -> dict[str, Any]:
    windows = decoder.write_windows(model)
    uses = windows["sliding_window"] is not None
    return {**decoder.values(model), **windows, "use_sliding_window": uses}


def qwen2_config(settings: Settings) -> Config:
    """Return the config of a Qwen2, whose queries, keys and values have biases."""
    return read_decoder(
        settings,
        Defaults(max_length=32768),
        attention={"out_bias": False},
        attention_bias=True,
        by_layer=_qwen_windows(settings),
    )


QWEN2 = Family(
    title="Qwen2",
    architecture="Qwen2ForCausalLM",
    config=qwen2_config,
    values=_qwen_values,
    pieces=PIECES,
    kinds=KINDS,
)


def qwen3_config(settings: Settings) -> Config:
    """Return the config of a Qwen3, which normalizes the queries and keys of each head."""
    return read_decoder(
        settings,
        Defaults(head_features=128, max_length=32768),
        qk_norm="head",
        attention_bias=settings.flag("attention_bias", False),
        by_layer=_qwen_windows(settings),
    )


def qwen3_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Qwen3."""
    return {**_qwen_values(model), "attention_bias": _biases(model)["attention_bias"]}


QWEN3 = Family(
    title="Qwen3",
    architecture="Qwen3ForCausalLM",
    config=qwen3_config,
    values=qwen3_values,
    pieces=PIECES,
    kinds=KINDS,
)


def smollm3_config(settings: Settings) -> Config:
    """Return the config of a SmolLM3, some of whose layers have no position encoding."""
    count = settings.layers()
    interval = settings.size("no_rope_layer_interval", 4)
    default = [int((at + 1) % interval != 0) for at in range(count)]
    rotated = settings.items("no_rope_layers", count, default)
    settings.get("max_window_layers")  # layer_types replaces it
    window = decoder.read_window(settings)
    window = window if settings.flag("use_sliding_window", False) else None
    plain = [SLIDING if window is not None and not has_rope else FULL for has_rope in rotated]
    kinds = decoder.read_layer_types(settings, lambda at: plain[at])
    windows = decoder.windows_by_layer(settings, kinds, window) or [{} for _ in rotated]
    options = [
        own if has_rope else {**own, "positions": "none"}
        for own, has_rope in zip(windows, rotated, strict=False)
    ]
    return read_decoder(
        settings,
        Defaults(kv_heads=4, max_length=32768, rope_base=2e6, tie_weights=True),
        attention_bias=settings.flag("attention_bias", False),
        inner_bias=settings.flag("mlp_bias", False),
        by_layer=options if any(options) else (),
    )


def smollm3_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a SmolLM3."""
    attention: list[Any] = [first.layer for first, _ in pairs(model)]
    rotated = [int(layer.positions == "rope") for layer in attention]
    return {**_qwen_values(model), **_biases(model), "no_rope_layers": rotated}


SMOLLM3 = Family(
    title="SmolLM3",
    architecture="SmolLM3ForCausalLM",
    config=smollm3_config,
    values=smollm3_values,
    pieces=PIECES,
    kinds=KINDS,
)


def olmo2_config(settings: Settings) -> Config:
    """Return the config of an OLMo 2, which normalizes outputs, and queries and keys as a whole."""
    return read_decoder(
        settings,
        Defaults(norm_eps=1e-5),
        qk_norm="all",
        attention_bias=settings.flag("attention_bias", False),
        placement="output",
    )


def olmo2_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of an OLMo 2."""
    return {**decoder.values(model), "attention_bias": _biases(model)["attention_bias"]}


OLMO2 = Family(
    title="OLMo 2",
    architecture="Olmo2ForCausalLM",
    config=olmo2_config,
    values=olmo2_values,
    pieces=partial(
        decoder.pieces, names=Names(("post_attention_layernorm", "post_feedforward_layernorm"))
    ),
    kinds=KINDS,
)


def phi3_config(settings: Settings) -> Config:
    """Return the config of a Phi-3, which may rotate a part of each head only."""
    for name in ("full_attn_mod", "interpolate_factor"):
        settings.repeats(name, 1)
    window = decoder.read_window(settings)
    return read_decoder(
        settings,
        Defaults(
            max_length=4096, norm_eps=1e-5, rope_share=1.0, rope_types=("default", "longrope")
        ),
        attention={} if window is None else {"window": window},
        embedding_dropout=settings.number("embd_pdrop", 0.0),
        layer_dropout=settings.number("resid_pdrop", 0.0),
    )


def phi3_values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Phi-3."""
    values = {
        **mistral_values(model),
        "embd_pdrop": model.dropout,
        "resid_pdrop": pairs(model)[0][0].dropout,
    }
    rope = values["rope_parameters"]
    values["partial_rotary_factor"] = rope.get("partial_rotary_factor", 1.0)
    length = "original_max_position_embeddings"
    return {**values, length: rope.get(length, values["max_position_embeddings"])}


PHI3 = Family(
    title="Phi-3",
    architecture="Phi3ForCausalLM",
    config=phi3_config,
    values=phi3_values,
    pieces=partial(decoder.pieces, names=Names(fused=True)),
    kinds=KINDS,
)
