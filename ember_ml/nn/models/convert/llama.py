"""Import of Llama, Mistral and Qwen2."""

from __future__ import annotations

from functools import partial
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.models.convert.activations import read_activation
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Piece, Stacked, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.stacks import Transformer
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel


def config(
    settings: Settings,
    *,
    kv_heads: int | None = None,
    max_length: int = 2048,
    window: int | None = None,
    attention_bias: bool = False,
    inner_bias: bool = False,
) -> Config:
    """Return the config of a model; the arguments are the differences between the families."""
    width, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    settings.expect("head_dim", width // heads, width // heads)
    transformer = Transformer(
        vocab_size=settings.size("vocab_size"),
        hidden_size=width,
        num_layers=settings.size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=settings.size("num_key_value_heads", kv_heads or heads),
        inner_size=settings.size("intermediate_size"),
        activation=read_activation(settings, "hidden_act", "silu"),
        gated=True,
        norm="rms_norm",
        norm_eps=settings.number("rms_norm_eps", 1e-6),
        max_length=settings.size("max_position_embeddings", max_length),
        tie_weights=settings.flag("tie_word_embeddings", False),
        rope_base=_rope_base(settings),
        window=window,
        attention_bias=attention_bias,
        inner_bias=inner_bias,
        attention_dropout=settings.number("attention_dropout", 0.0),
    )
    settings.check()
    return transformer.config()


def _rope_base(settings: Settings) -> float:
    """Return the base of the rotary frequencies, which older versions store in other fields."""
    given = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    flat = isinstance(given, dict) and not any(isinstance(x, dict) for x in given.values())
    rope = Settings(settings.where, given if flat else {"rope_type": given})
    rope.expect("rope_type", "default", rope.get("type", "default"))
    rope.expect("partial_rotary_factor", 1, settings.get("partial_rotary_factor", 1))
    base = rope.number("rope_theta", settings.number("rope_theta", 10000.0))
    settings.problems += [f"rope: {problem}" for problem in rope.problems]
    return base


def llama_config(settings: Settings) -> Config:
    """Return the config of a Llama."""
    return config(
        settings,
        attention_bias=settings.flag("attention_bias", False),
        inner_bias=settings.flag("mlp_bias", False),
    )


def mistral_config(settings: Settings) -> Config:
    """Return the config of a Mistral, which may have a sliding window."""
    given = "sliding_window" in settings.values
    window = settings.get("sliding_window", None if given else 4096)
    if window is not None:
        window = settings.size("sliding_window", window) - 1  # includes the position itself
    return config(settings, kv_heads=8, max_length=131072, window=window)


def qwen2_config(settings: Settings) -> Config:
    """Return the config of a Qwen2, whose queries, keys and values have biases."""
    settings.expect("use_sliding_window", False, False)
    for kind in settings.get("layer_types", []):
        if kind != "full_attention":
            settings.problems.append(f"layer_types: {kind!r} is not supported")
    return config(settings, max_length=32768, attention_bias=True)


def pieces(model: LanguageModel, *, out_bias: bool = True) -> list[Piece]:
    """Return the variables and the names of their tensors.

    Args:
        model: The model.
        out_bias: Whether the checkpoint has the bias of the output projection, if the model has
            one. If not, it stays zero.
    """
    pieces = pieces_of(getattr(model.backbone.norm, "weight", None), "norm.weight")
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        pieces += pieces_of(getattr(first.norm, "weight", None), f"{name}.input_layernorm.weight")
        pieces += pieces_of(
            getattr(second.norm, "weight", None), f"{name}.post_attention_layernorm.weight"
        )
        pieces += _attention(first.layer, f"{name}.self_attn", out_bias)
        pieces += _inner(second.layer, f"{name}.mlp")
    return pieces


def _attention(layer: Any, name: str, out_bias: bool) -> list[Piece]:
    each = layer.num_kv_heads * layer.head_features
    rows = Stacked(layer.features, each, each)
    names = [f"{name}.{part}_proj" for part in "qkv"]
    return [
        *pieces_of(layer.qkv.weight, *(f"{part}.weight" for part in names), layout=rows),
        *pieces_of(layer.qkv.bias, *(f"{part}.bias" for part in names), layout=rows),
        *pieces_of(layer.out.weight, f"{name}.o_proj.weight"),
        *pieces_of(layer.out.bias if out_bias else None, f"{name}.o_proj.bias"),
    ]


def _inner(layer: Any, name: str) -> list[Piece]:
    inner = layer.reduce.in_features
    rows = Stacked(inner, inner)
    names = [f"{name}.{part}_proj" for part in ("gate", "up")]
    return [
        *pieces_of(layer.expand.weight, *(f"{part}.weight" for part in names), layout=rows),
        *pieces_of(layer.expand.bias, *(f"{part}.bias" for part in names), layout=rows),
        *pieces_of(layer.reduce.weight, f"{name}.down_proj.weight"),
        *pieces_of(layer.reduce.bias, f"{name}.down_proj.bias"),
    ]


LLAMA = Family(
    prefix="model.",
    embedding="embed_tokens.weight",
    derived=("rotary_emb.inv_freq",),
    config=llama_config,
    pieces=pieces,
)
MISTRAL = Family(LLAMA.prefix, LLAMA.embedding, LLAMA.derived, mistral_config, pieces)
QWEN2 = Family(
    LLAMA.prefix, LLAMA.embedding, LLAMA.derived, qwen2_config, partial(pieces, out_bias=False)
)
