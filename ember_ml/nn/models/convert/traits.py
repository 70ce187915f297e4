"""Traits: what determines the function that a model computes, except its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ember_ml.nn.blocks import ParallelBlock, ResidualBlock
from ember_ml.nn.layers.channel_mixing import FeedForward, GatedLinear, MoE
from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.layers.sequence_mixing.mamba2 import Mamba2
from ember_ml.nn.layers.sequence_mixing.rg_lru import RGLRU
from ember_ml.nn.models.convert.activations import name_of
from ember_ml.nn.models.convert.structure import flatten
from ember_ml.nn.models.language import LanguageModel
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer
from ember_ml.nn.rope_scalings import RopeScaling

LENGTHS = (1, 2**30)
"""Lengths at which scalings of rotary embeddings are compared."""


def differences(model: LanguageModel, twin: LanguageModel) -> list[str]:
    """Return in what a model differs from the one that transformers would compute."""
    ours, theirs = traits(model), traits(twin)
    places: dict[tuple[str, str], list[str]] = {}
    for at, name in dict.fromkeys((*ours, *theirs)):
        pair = ours.get((at, name)), theirs.get((at, name))
        if not _equal(*pair):
            problem = f"{name} is {_short(pair[0])}, not {_short(pair[1])}"
            places.setdefault(("layer" if at else "", problem), []).append(at)
    return [
        f"{what}{'s' * (len(where) > 1)} {', '.join(where)}: {problem}" if what else problem
        for (what, problem), where in places.items()
    ]


def _short(value: Any) -> str:
    return f"{value!r:.60}"


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-6)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(_equal, x, y))
    return bool(x == y)


def traits(model: LanguageModel) -> dict[tuple[str, str], Any]:
    """Return what determines the function that a model computes, except its parameters.

    The keys are the index of a layer, or "" for the whole model, and a name.
    """
    head = model.head_shift is not None or (model.head is not None and model.head.bias is not None)
    whole: dict[str, Any] = {
        "vocab_size": model.vocab_size,
        "hidden_size": model.backbone.features,
        "positions": _positions(model),
        "embedding_scale": float(model.embedding_scale),
        "logit_softcap": model.logit_softcap,
        "head_bias": head,
        "the final norm": _norm(model.backbone.norm),
    }
    layers = flatten(model.backbone.blocks)
    whole["the number of layers"] = len(layers)
    result = {("", name): value for name, value in whole.items()}
    starts: dict[int, int] = {}
    for at, (block, owner) in enumerate(layers):
        start = starts.setdefault(id(owner), at) if isinstance(owner, ParallelBlock) else at
        own = {"the layer whose input it reads": start, **_block(block)}
        result |= {(str(at), name): value for name, value in own.items()}
    return result


def _positions(model: LanguageModel) -> str:
    if model.table is None:
        return "none"
    return "sinusoidal" if isinstance(model.table, Buffer) else "learned"


def _block(block: ResidualBlock) -> dict[str, Any]:
    kind = next((each for each in TRAITS if isinstance(block.layer, each)), type(block.layer))
    return {
        "class": kind.__name__,
        "norm": _norm(block.norm),
        "placement": block.placement,
        **(TRAITS[kind](block.layer) if kind in TRAITS else {}),
    }


def _norm(norm: Module | None) -> str:
    return "none" if norm is None else f"{type(norm).__name__}(eps={getattr(norm, 'eps', None)})"


def _biases(*maps: Any) -> dict[str, Any]:
    return {"bias": tuple(each.bias is not None for each in maps)}


def _attention(layer: Any) -> dict[str, Any]:
    rope = {
        "rope_base": float(layer.rope_base),
        "rope_features": layer.rope_features,
        "rope_scaling": _scaling(layer, layer.rope_scaling),
    }
    return {
        "causal": layer.is_causal,
        "window": layer.window,
        "positions": layer.positions,
        **(rope if layer.positions == "rope" else {}),
        "num_heads": layer.num_heads,
        "num_kv_heads": layer.num_kv_heads,
        "head_features": layer.head_features,
        "scale": float(layer.scale or layer.head_features**-0.5),
        "softcap": layer.softcap,
        "qk_norm": (layer.qk_norm, layer.query_norm.eps if layer.qk_norm != "none" else None),
        **_biases(layer.qkv, layer.out),
    }


def _scaling(layer: Any, scaling: RopeScaling | None) -> tuple[float, ...] | None:
    if scaling is None:
        return None
    speeds = [scaling.scale(layer.rope_base, layer.rope_features, length) for length in LENGTHS]
    return (scaling.attention_factor, *speeds[0], *speeds[1])


def _network(layer: Any) -> dict[str, Any]:
    return {
        "inner_features": layer.reduce.in_features,
        "activation": name_of(layer.activation) or repr(layer.activation),
        **_biases(layer.expand, layer.reduce),
    }


def _moe(layer: Any) -> dict[str, Any]:
    experts = layer.experts
    return {
        "router": type(layer.router).__name__,
        "top_k": layer.router.top_k,
        "normalize": layer.router.normalize,
        "num_experts": layer.router.num_experts,
        "expert": type(experts).__name__,
        "activation": name_of(getattr(experts, "activation", None)),
        "inner_features": experts.reduce.shape[-1] if hasattr(experts, "reduce") else None,
        "capacity_factor": layer.capacity_factor,
        "combiner": layer.combiner is not None,
    }


def _mamba(layer: Any) -> dict[str, Any]:
    return {
        "d_state": layer.d_state,
        "d_conv": layer.conv.kernel_size,
        "inner features": layer.inner,
        "dt_rank": layer.dt_rank,
        "select_norm": (
            layer.select_norm,
            layer.dt_norm.eps if layer.select_norm != "none" else None,
        ),
        "conv_bias": layer.conv.bias is not None,
        **_biases(layer.in_proj, layer.out_proj),
    }


def _rg_lru(layer: Any) -> dict[str, Any]:
    return {
        "inner_features": layer.inner,
        "num_heads": layer.num_heads,
        "d_conv": layer.conv.kernel_size,
        "activation": name_of(layer.activation) or repr(layer.activation),
    }


def _mamba2(layer: Any) -> dict[str, Any]:
    return {
        "d_state": layer.d_state,
        "d_conv": layer.conv.kernel_size,
        "inner features": layer.inner,
        "head_dim": layer.head_dim,
        "num_groups": layer.num_groups,
        "norm_eps": layer.norm.eps,
        "conv_bias": layer.conv.bias is not None,
        **_biases(layer.in_proj, layer.out_proj),
    }


TRAITS: dict[type[Module], Callable[[Any], dict[str, Any]]] = {
    SelfAttention: _attention,
    GatedLinear: _network,
    FeedForward: _network,
    MoE: _moe,
    Mamba: _mamba,
    Mamba2: _mamba2,
    RGLRU: _rg_lru,
}
"""Class of a layer -> function from a layer to its traits."""
