"""Export of models as Llama, or as Mistral if attention has a window."""

from __future__ import annotations

from typing import Any

from ember_ml.nn.layers.channel_mixing import GatedLinear, RMSNorm
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert.activations import name_of
from ember_ml.nn.models.convert.structure import Findings, residuals
from ember_ml.nn.models.language import LanguageModel

DEFAULT_LENGTH = 2048


def describe(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a model; raise a ConversionError if it is not a Llama."""
    findings = Findings("llama")
    layers = residuals(model)
    findings.kinds(layers, (SelfAttention, GatedLinear))
    findings.head(model)
    findings.need(model.table is None, "position embeddings are added to the token embeddings")
    attention: list[Any] = [block.layer for block in layers[::2]]
    inner: list[Any] = [block.layer for block in layers[1::2]]
    values = {
        **_whole(findings, model),
        **_attention(findings, attention),
        **_inner(findings, inner),
        "num_hidden_layers": len(attention),
    }
    values = _windowed(findings, values, attention)
    findings.check()
    return values


def _whole(findings: Findings, model: LanguageModel) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": model.vocab_size,
        "hidden_size": model.backbone.features,
        "max_position_embeddings": getattr(model.config, "max_length", None) or DEFAULT_LENGTH,
        "rms_norm_eps": findings.norms(model, RMSNorm),
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _attention(findings: Findings, attention: list[Any]) -> dict[str, Any]:
    for layer in attention:
        findings.need(layer.is_causal, "attention is not causal (causal=False)")
        findings.need(
            layer.positions == "rope", f"attention has positions={layer.positions!r}, not 'rope'"
        )
    base = findings.one("rope_base", [layer.rope_base for layer in attention])
    maps = [each for layer in attention for each in (layer.qkv, layer.out)]
    return {
        "num_attention_heads": findings.one("num_heads", [each.num_heads for each in attention]),
        "num_key_value_heads": findings.one(
            "num_kv_heads", [each.num_kv_heads for each in attention]
        ),
        "attention_dropout": findings.one(
            "attention_dropout", [each.dropout for each in attention]
        ),
        "attention_bias": findings.one(
            "the bias of attention", [each.bias is not None for each in maps]
        ),
        "rope_theta": base,  # for transformers before version 5
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
    }


def _inner(findings: Findings, inner: list[Any]) -> dict[str, Any]:
    activation = findings.one("the activation", [name_of(layer.activation) for layer in inner])
    findings.need(activation is not None, f"it has no activation {inner[0].activation!r:.60}")
    maps = [each for layer in inner for each in (layer.expand, layer.reduce)]
    return {
        "intermediate_size": findings.one(
            "inner_size", [each.reduce.in_features for each in inner]
        ),
        "hidden_act": activation,
        "mlp_bias": findings.one("the bias of the maps", [each.bias is not None for each in maps]),
    }


def _windowed(findings: Findings, values: dict[str, Any], attention: list[Any]) -> dict[str, Any]:
    """Return the values of a Mistral, which has no biases, if attention has a window."""
    window = findings.one("window", [layer.window for layer in attention])
    if window is None:
        return values
    findings.family = "mistral"
    biased = any([values.pop("attention_bias"), values.pop("mlp_bias")])
    findings.need(not biased, "maps have biases (bias=True)")
    return {
        **values,
        "architectures": ["MistralForCausalLM"],
        "model_type": "mistral",
        "sliding_window": window + 1,  # includes the position itself
    }
