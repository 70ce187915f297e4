"""Mixtral: Mistral with mixtures of experts."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.base import Config
from ember_ml.nn.layers.channel_mixing import MoE
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert import decoder
from ember_ml.nn.models.convert.decoder import Defaults, read_decoder
from ember_ml.nn.models.convert.families import Family
from ember_ml.nn.models.convert.layouts import ExpertMatrices, Piece, pieces_of
from ember_ml.nn.models.convert.llama import mistral_values
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.models.convert.structure import pairs
from ember_ml.nn.models.language import LanguageModel

EXPERTS = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "relu": "reglu"}
"""Activation in transformers -> expert of `MoE`."""


def read_experts(
    settings: Settings, count: str, default: int = 8, *, normalize: bool = True
) -> dict[str, Any]:
    """Return the config of a mixture of experts.

    Args:
        settings: The settings.
        count: Field of the number of experts.
        default: Default of the number of experts.
        normalize: Whether the weights of a position's experts sum to 1.
    """
    name = settings.get("hidden_act", "silu")
    if name not in EXPERTS:
        settings.problems.append(f"hidden_act={name!r} is not supported, only {', '.join(EXPERTS)}")
    top = settings.size("num_experts_per_tok", 2)
    if normalize and top == 1:
        settings.problems.append("num_experts_per_tok=1 is not supported: the router has no effect")
    return {
        "type": "layers/moe",
        "features": settings.size("hidden_size"),
        "num_experts": settings.size(count, default),
        "top_k": top,
        "expert": EXPERTS.get(name, "swiglu"),
        "inner_features": settings.size("intermediate_size"),
        "normalize": normalize,
        "balance_weight": settings.number("router_aux_loss_coef", 0.001),
        "z_weight": 0.0,
    }


def config(settings: Settings) -> Config:
    """Return the config of a Mixtral."""
    window = decoder.read_window(settings)
    settings.expect("router_jitter_noise", 0, 0)
    experts = read_experts(settings, "num_local_experts")
    layers = range(settings.layers())
    return read_decoder(
        settings,
        Defaults(kv_heads=8, max_length=131072, norm_eps=1e-5, rope_base=1e6),
        attention={} if window is None else {"window": window},
        inner=dict.fromkeys(layers, experts),
    )


def values(model: LanguageModel) -> dict[str, Any]:
    """Return the config.json of a Mixtral."""
    moe: Any = pairs(model)[0][1].layer
    return {
        **mistral_values(model),
        "num_local_experts": moe.router.num_experts,
        "num_experts_per_tok": moe.router.top_k,
        "router_aux_loss_coef": moe.balance_weight,
    }


def expert_pieces(layer: Any, router: str, name: str, parts: tuple[str, str, str]) -> list[Piece]:
    """Return the variables of a mixture of gated experts.

    Args:
        layer: The mixture.
        router: Name of the router.
        name: Prefix of the experts, whose numbers follow.
        parts: Names of the matrices of gate, value and output.
    """
    count = layer.router.num_experts
    gate, up, down = parts
    expand = [f"{name}.{at}.{part}.weight" for at in range(count) for part in (gate, up)]
    reduce = [f"{name}.{at}.{down}.weight" for at in range(count)]
    experts = layer.experts
    return [
        *pieces_of(layer.router.weight, f"{router}.weight"),
        *pieces_of(experts.expand, *expand, layout=ExpertMatrices(count, 2)),
        *pieces_of(experts.reduce, *reduce, layout=ExpertMatrices(count)),
    ]


def pieces(model: LanguageModel) -> list[Piece]:
    """Return the variables and the names of their tensors."""
    pieces = decoder.norm_pieces(model.backbone.norm, "norm")
    for at, (first, second) in enumerate(pairs(model)):
        name = f"layers.{at}"
        pieces += decoder.norm_pieces(first.norm, f"{name}.input_layernorm")
        pieces += decoder.norm_pieces(second.norm, f"{name}.post_attention_layernorm")
        pieces += decoder.attention_pieces(first.layer, f"{name}.self_attn")
        moe = f"{name}.block_sparse_moe"
        pieces += expert_pieces(second.layer, f"{moe}.gate", f"{moe}.experts", ("w1", "w3", "w2"))
    return pieces


MIXTRAL = Family(
    title="Mixtral",
    architecture="MixtralForCausalLM",
    config=config,
    values=values,
    pieces=pieces,
    kinds=((SelfAttention,), (MoE,)),
)
