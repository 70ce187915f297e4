"""Export of models as GPT-2."""

from __future__ import annotations

from typing import Any

from ember_ml.nn.layers.channel_mixing import FeedForward, LayerNorm
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert.activations import name_of
from ember_ml.nn.models.convert.structure import Findings, residuals
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.parameter import Buffer


def describe(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a model; raise a ConversionError if it is not a GPT-2."""
    findings = Findings("gpt2")
    layers = residuals(model)
    findings.kinds(layers, (SelfAttention, FeedForward))
    findings.head(model)
    attention: list[Any] = [block.layer for block in layers[::2]]
    inner: list[Any] = [block.layer for block in layers[1::2]]
    maps = [each for layer in attention for each in (layer.qkv, layer.out)]
    maps += [each for layer in inner for each in (layer.expand, layer.reduce)]
    findings.need(all(each.bias is not None for each in maps), "a map has no bias (bias=False)")
    values = {
        **_whole(findings, model),
        **_attention(findings, attention),
        **_inner(findings, inner),
        "resid_pdrop": findings.one("dropout", [block.dropout for block in layers]),
    }
    findings.check()
    return values


def _whole(findings: Findings, model: LanguageModel) -> dict[str, Any]:
    learned = model.table is not None and not isinstance(model.table, Buffer)
    findings.need(learned, "the positions are not learned (positions='learned')")
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": model.vocab_size,
        "n_positions": model.max_length,
        "n_embd": model.backbone.features,
        "layer_norm_epsilon": findings.norms(model, LayerNorm),
        "embd_pdrop": model.dropout,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _attention(findings: Findings, attention: list[Any]) -> dict[str, Any]:
    for layer in attention:
        findings.need(layer.is_causal, "attention is not causal (causal=False)")
        findings.need(layer.window is None, f"attention has a window of {layer.window}")
        own = layer.positions
        findings.need(own == "none", f"attention has positions of its own ({own!r})")
        findings.need(
            layer.num_kv_heads == layer.num_heads,
            f"{layer.num_heads} heads share {layer.num_kv_heads} of keys and values",
        )
    return {
        "n_layer": len(attention),
        "n_head": findings.one("num_heads", [layer.num_heads for layer in attention]),
        "attn_pdrop": findings.one("attention_dropout", [layer.dropout for layer in attention]),
    }


def _inner(findings: Findings, inner: list[Any]) -> dict[str, Any]:
    activation = findings.one("the activation", [name_of(layer.activation) for layer in inner])
    findings.need(activation is not None, f"it has no activation {inner[0].activation!r:.60}")
    return {
        "n_inner": findings.one("inner_size", [layer.expand.out_features for layer in inner]),
        "activation_function": activation,
    }
