"""GPT-NeoX (Pythia)."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.blocks import ParallelBlock
from ember_ml.nn.layers.channel_mixing import FeedForward
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.activations import read_activation
from ember_ml.nn.models.convert.decoder import dense_pieces, norm_pieces
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import ByHead, Piece
from ember_ml.nn.models.convert.rope import read_rope
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.stacks import Transformer
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel


def config(settings: Settings) -> Config:
    """Return the config of a GPT-NeoX, whose layers may be parallel."""
    width, heads = settings.size("hidden_size"), settings.size("num_attention_heads")
    biased = settings.flag("attention_bias", True)
    share = settings.number("rotary_pct", 0.25)
    base = settings.number("rotary_emb_base", 10000.0)
    dropout = settings.number("hidden_dropout", 0.0)
    transformer = Transformer(
        vocab_size=settings.size("vocab_size"),
        hidden_size=width,
        num_layers=settings.layers(),
        num_heads=heads,
        inner_size=settings.size("intermediate_size"),
        activation=read_activation(settings, "hidden_act", "gelu"),
        gated=False,
        norm="layer_norm",
        norm_eps=settings.number("layer_norm_eps", 1e-5),
        max_length=settings.size("max_position_embeddings", 2048),
        tie_weights=settings.flag("tie_word_embeddings", False),
        attention_bias=biased,
        inner_bias=True,
        embedding_dropout=dropout,
        layer_dropout=dropout,
        attention_dropout=settings.number("attention_dropout", 0.0),
        attention=read_rope(settings, max(width // heads, 1), base=base, share=share),
        parallel=settings.flag("use_parallel_residual", True),
    )
    settings.expect("is_decoder", False, False)
    settings.check()
    return transformer.config()


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a GPT-NeoX."""
    common = decoder.values(model)
    for name in ("num_key_value_heads", "head_dim", "rope_theta", "rms_norm_eps"):
        del common[name]
    first, _ = pairs(model)[0]
    attention: Any = first.layer
    rope = common["rope_parameters"]
    common["rope_parameters"] = {"partial_rotary_factor": 1.0, **rope}
    return {
        **common,
        "layer_norm_eps": getattr(model.backbone.norm, "eps", None),
        "hidden_dropout": first.dropout,
        "attention_bias": attention.qkv.bias is not None,
        "rotary_emb_base": rope["rope_theta"],
        "rotary_pct": rope.get("partial_rotary_factor", 1.0),
        "use_parallel_residual": any(isinstance(part, ParallelBlock) for part in model.modules()),
    }


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = norm_pieces(model.backbone.norm, "final_layer_norm")
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        attention: Any = first.layer
        inner: Any = second.layer
        heads = ByHead(attention.num_heads)
        pieces += norm_pieces(first.norm, f"{name}.input_layernorm")
        pieces += norm_pieces(second.norm, f"{name}.post_attention_layernorm")
        pieces += dense_pieces(attention.qkv, f"{name}.attention.query_key_value", layout=heads)
        pieces += dense_pieces(attention.out, f"{name}.attention.dense")
        pieces += dense_pieces(inner.expand, f"{name}.mlp.dense_h_to_4h")
        pieces += dense_pieces(inner.reduce, f"{name}.mlp.dense_4h_to_h")
    return pieces


GPT_NEOX = Family(
    title="GPT-NeoX",
    architecture="GPTNeoXForCausalLM",
    config=config,
    values=values,
    pieces=pieces,
    kinds=((SelfAttention,), (FeedForward,)),
    prefix="gpt_neox.",
    embedding="embed_in.weight",
    head="embed_out.weight",
    derived=(".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq"),
)
