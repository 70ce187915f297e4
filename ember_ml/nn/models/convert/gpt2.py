"""GPT-2."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import FeedForward
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert.activations import name_of, read_activation
from ember_ml.nn.models.convert.decoder import norm_pieces
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import Piece, Transposed, pieces_of
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.stacks import Transformer
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel


def config(settings: Settings) -> Config:
    """Return the config of a GPT-2."""
    width = settings.size("n_embd")
    settings.expect("scale_attn_weights", True, True)
    settings.expect("scale_attn_by_inverse_layer_idx", False, False)
    settings.expect("add_cross_attention", False, False)
    settings.get("n_ctx")  # older files repeat n_positions
    settings.get("reorder_and_upcast_attn")  # a matter of precision
    transformer = Transformer(
        vocab_size=settings.size("vocab_size"),
        hidden_size=width,
        num_layers=settings.layers("n_layer"),
        num_heads=settings.size("n_head"),
        inner_size=settings.size("n_inner", 4 * width),
        activation=read_activation(settings, "activation_function", "gelu_new"),
        gated=False,
        norm="layer_norm",
        norm_eps=settings.number("layer_norm_epsilon", 1e-5),
        max_length=settings.size("n_positions", 1024),
        tie_weights=settings.flag("tie_word_embeddings", True),
        learned_positions=True,
        attention_bias=True,
        inner_bias=True,
        embedding_dropout=settings.number("embd_pdrop", 0.1),
        layer_dropout=settings.number("resid_pdrop", 0.1),
        attention_dropout=settings.number("attn_pdrop", 0.1),
    )
    settings.check()
    return transformer.config()


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = pieces_of(model.table, "wpe.weight") + norm_pieces(model.backbone.norm, "ln_f")
    for at, (first, second) in enumerate(pairs(model)):
        name = f"h.{at}"
        pieces += norm_pieces(first.norm, f"{name}.ln_1")
        pieces += norm_pieces(second.norm, f"{name}.ln_2")
        pieces += _maps(first.layer, second.layer, name)
    return pieces


def _maps(attention: Any, inner: Any, name: str) -> list[Piece]:
    return [
        *_map(attention.qkv, f"{name}.attn.c_attn"),
        *_map(attention.out, f"{name}.attn.c_proj"),
        *_map(inner.expand, f"{name}.mlp.c_fc"),
        *_map(inner.reduce, f"{name}.mlp.c_proj"),
    ]


def _map(dense: Any, name: str) -> list[Piece]:
    return pieces_of(dense.weight, f"{name}.weight", layout=Transposed()) + pieces_of(
        dense.bias, f"{name}.bias"
    )


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a GPT-2."""
    first, second = pairs(model)[0]
    attention: Any = first.layer
    inner: Any = second.layer
    return {
        "vocab_size": model.vocab_size,
        "n_positions": model.max_length,
        "n_embd": model.backbone.features,
        "n_layer": len(pairs(model)),
        "n_head": attention.num_heads,
        "n_inner": inner.expand.out_features,
        "activation_function": name_of(inner.activation),
        "layer_norm_epsilon": getattr(model.backbone.norm, "eps", None),
        "embd_pdrop": model.dropout,
        "resid_pdrop": first.dropout,
        "attn_pdrop": attention.dropout,
        "bos_token_id": None,
        "eos_token_id": None,
    }


GPT2 = Family(
    title="GPT-2",
    architecture="GPT2LMHeadModel",
    kinds=((SelfAttention,), (FeedForward,)),
    prefix="transformer.",
    embedding="wte.weight",
    derived=(".attn.bias", ".attn.masked_bias"),
    config=config,
    values=values,
    pieces=pieces,
)
