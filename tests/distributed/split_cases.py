"""Layers to split, and the shapes that the parts of their parameters must have.

The shapes are written out here, from the sizes of the layers; no code of the library computes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Shapes = dict[str, tuple[int, ...]]


class Case(NamedTuple):
    """A layer of width 16, and the shapes of the parts of its split parameters."""

    layer: str
    options: dict[str, Any]
    shapes: Callable[[int], Shapes]
    """Shapes for a number of processes; parameters that are not named here are whole."""

    @property
    def config(self) -> dict[str, Any]:
        """The layer as plain data."""
        return {"type": f"layers/{self.layer}", **self.options}

    @property
    def name(self) -> str:
        """Name of the test."""
        return "-".join([self.layer, *(f"{key}={x}" for key, x in self.options.items())])


def _attention(keys: int = 16, kept: bool = False, bias: bool = True) -> Callable[[int], Shapes]:
    def shapes(n: int) -> Shapes:
        width = 16 // n + 2 * (keys if kept else keys // n)
        return {
            "qkv.weight": (width, 16),
            **({"qkv.bias": (width,)} if bias else {}),
            "out.weight": (16, 16 // n),
        }

    return shapes


def _gated(inner: int, bias: bool = False, gates: int = 2) -> Callable[[int], Shapes]:
    def shapes(n: int) -> Shapes:
        rows = gates * inner // n
        biases: Shapes = {"expand.bias": (rows,)} if bias else {}
        return {"expand.weight": (rows, 16), "reduce.weight": (16, inner // n), **biases}

    return shapes


def _heads(*columns: tuple[str, int], **vectors: int) -> Callable[[int], Shapes]:
    """Shapes of dense layers of (name, outputs), of vectors and of the output projection."""

    def shapes(n: int) -> Shapes:
        return {
            **{f"{name}.weight": (width // n, 16) for name, width in columns},
            **{name.replace("__", "."): (width // n,) for name, width in vectors.items()},
            "out.weight": (16, 16 // n),
        }

    return shapes


def _mamba(n: int) -> Shapes:
    inner = 32 // n
    return {
        "in_proj.weight": (2 * inner, 16),
        "conv.weight": (inner, 4),
        "conv.bias": (inner,),
        "x_proj.weight": (1 + 2 * 4, inner),
        "dt_weight": (inner, 1),
        "dt_bias": (inner,),
        "A_log": (inner, 4),
        "D": (inner,),
        "out_proj.weight": (16, inner),
    }


def _mamba2(groups: int) -> Callable[[int], Shapes]:
    def shapes(n: int) -> Shapes:
        inner, heads = 32 // n, 8 // n
        shared = 16 if groups == 1 else 16 * groups // n
        filtered = inner + 2 * shared
        return {
            "in_proj.weight": (inner + filtered + heads, 16),
            "conv.weight": (filtered, 4),
            "conv.bias": (filtered,),
            **dict.fromkeys(("dt_bias", "A_log", "D"), (heads,)),
            "norm.weight": (inner,),
            "out_proj.weight": (16, inner),
        }

    return shapes


def _hyena(
    inner: int, groups: int, filters: int, order: int, outputs: int | None = None
) -> Callable[[int], Shapes]:
    def shapes(n: int) -> Shapes:
        return {
            "in_proj.weight": (3 * inner // groups // n, 16),
            "in_proj.bias": (3 * inner // groups // n,),
            "short.weight": (3 * inner // n, 3),
            "short.bias": (3 * inner // n,),
            "filter.output.weight": (filters // n, order),
            "skip": (filters // n,),
            "out_proj.weight": (16, (outputs or inner) // n),
        }

    return shapes


def _rwkv(**vectors: int) -> Callable[[int], Shapes]:
    columns = [(name, 16) for name in ("receptance", "key", "value", "gate")]

    def shapes(n: int) -> Shapes:
        dense = _heads(*columns, norm__weight=16, norm__bias=16, **vectors)(n)
        return {**dense, "bonus": (4 // n, 4)}

    return shapes


def _rwkv6(n: int) -> Shapes:
    return {**_rwkv()(n), "decay_up.weight": (16 // n, 64), "decay_up.bias": (16 // n,)}


def _channel_mixer(n: int) -> Shapes:
    return {"key.weight": (64 // n, 16), "value.weight": (16, 64 // n)}


def _mlp(*sizes: int) -> Callable[[int], Shapes]:
    def shapes(n: int) -> Shapes:
        layers: Shapes = {}
        for at in range(0, len(sizes) - 2, 2):
            middle = sizes[at + 1] // n
            layers[f"layers.{at}.weight"] = (middle, sizes[at])
            layers[f"layers.{at}.bias"] = (middle,)
            layers[f"layers.{at + 1}.weight"] = (sizes[at + 2], middle)
        return layers

    return shapes


def _rg_lru(n: int) -> Shapes:
    return {
        "in_proj.weight": (32 // n, 16),
        "in_proj.bias": (32 // n,),
        "conv.weight": (16 // n, 4),
        "conv.bias": (16 // n,),
        **dict.fromkeys(("input_gate", "decay_gate"), (4 // n, 4, 4)),
        **dict.fromkeys(("input_bias", "decay_bias"), (4 // n, 4)),
        "decay": (16 // n,),
        "out_proj.weight": (16, 16 // n),
    }


def _experts(inner: int, gates: int) -> Callable[[int], Shapes]:
    return lambda n: {
        "experts.expand": (4 // n, gates * inner, 16),
        "experts.reduce": (4 // n, 16, inner),
    }


def _layer_experts(n: int) -> Shapes:
    return {
        f"experts.{at}.{name}": shape
        for at in range(4)
        for name, shape in _gated(64, gates=1)(n).items()
    }


def _cross(n: int) -> Shapes:
    return {
        "query.weight": (16 // n, 16),
        "query.bias": (16 // n,),
        "key_value.weight": (32 // n, 16),
        "key_value.bias": (32 // n,),
        "out.weight": (16, 16 // n),
    }


def _nothing(n: int) -> Shapes:
    return {}


FOUR = {"num_heads": 4}
CASES = [
    Case("attention", FOUR, _attention()),
    Case("attention", {**FOUR, "num_kv_heads": 1}, _attention(4, kept=True)),
    Case("attention", {**FOUR, "positions": "alibi", "bias": False}, _attention(bias=False)),
    Case("attention", {**FOUR, "qk_norm": "head"}, _attention()),
    Case(
        "attention",
        {**FOUR, "qk_norm": "all"},
        lambda n: _attention()(n) | {f"{x}_norm.weight": (16 // n,) for x in ("query", "key")},
    ),
    Case("causal_attention", FOUR, _attention()),
    Case("grouped_query_attention", {**FOUR, "num_kv_heads": 2}, _attention(8)),
    Case("mh_attention", FOUR, _attention()),
    Case("sliding_attention", {**FOUR, "window": 3}, _attention()),
    Case("mh_sliding_attention", {**FOUR, "window": 3}, _attention()),
    Case("cross_attention", FOUR, _cross),
    Case("mlp", {}, _mlp(16, 64, 16)),
    Case("mlp", {"hidden_features": [8, 12], "activation": "tanh"}, _mlp(16, 8, 12, 16)),
    Case("mlp", {"activation": "prelu"}, _mlp(16, 64, 16)),
    Case("mlp", {"activation": "prelu", "hidden_features": [8, 8]}, _nothing),
    Case("mlp", {"activation": "softmax"}, _nothing),
    Case("feed_forward", {}, _gated(64, gates=1)),
    Case("gated_linear", {"activation": "tanh"}, _gated(48)),
    Case("glu", {}, _gated(48)),
    Case("swiglu", {}, _gated(48)),
    Case("geglu", {"bias": True, "inner_features": 8}, _gated(8, bias=True)),
    Case("reglu", {}, _gated(48)),
    Case("rwkv5_channel_mixer", {}, _channel_mixer),
    Case("rwkv6_channel_mixer", {}, _channel_mixer),
    Case("moe", {"num_experts": 4, "inner_features": 8}, _experts(8, 2)),
    Case(
        "moe",
        {
            "num_experts": 4,
            "inner_features": 8,
            "expert": "mlp",
            "combiner": "concat",
            "capacity_factor": 0.5,
            "overflow": "pass",
        },
        _experts(8, 1),
    ),
    Case("moe", {"num_experts": 4, "router": "expert_choice", "top_k": 1}, _experts(48, 2)),
    Case("moe", {"num_experts": 4, "expert": "feed_forward"}, _layer_experts),
    Case(
        "moe_mlp",
        {"num_experts": 4, "inner_features": 2, "top_k": 1},
        lambda n: {"experts.weight": (4 // n, 16, 8)},
    ),
    Case("mamba", {}, _mamba),
    Case("mamba", {"select_norm": "learned"}, _mamba),
    Case("mamba2", {"head_dim": 4}, _mamba2(1)),
    Case("mamba2", {"head_dim": 4, "num_groups": 2}, _mamba2(2)),
    Case("rg_lru", FOUR, _rg_lru),
    Case("hyena", {"max_length": 16}, _hyena(64, 4, 64, 4)),
    Case(
        "hyena",
        {"inner_factor": 1, "projection_groups": 1, "max_length": 16},
        _hyena(16, 1, 16, 4),
    ),
    Case(
        "multi_head_hyena",
        {"num_heads": 2, "inner_factor": 2, "max_length": 16},
        _hyena(32, 4, 16, 2),
    ),
    Case(
        "hyena_experts",
        {"num_experts": 3, "expert_features": 4, "max_length": 16},
        _hyena(12, 1, 12, 16, outputs=4),
    ),
    Case(
        "gated_linear_attention",
        FOUR,
        lambda n: _heads(("qkvg", 64), decay_up__bias=16)(n) | {"decay_up.weight": (16 // n, 16)},
    ),
    Case(
        "mh_gated_linear_attention",
        {"num_heads": 8, "gate_rank": 2},
        lambda n: _heads(("qkvg", 64), decay_up__bias=16)(n) | {"decay_up.weight": (16 // n, 2)},
    ),
    # a small denominator would amplify rounding
    Case("linear_attention", {**FOUR, "eps": 50.0}, _heads(("qkv", 48))),
    Case("mh_linear_attention", {"num_heads": 8, "eps": 50.0}, _heads(("qkv", 48))),
    Case("delta_net", FOUR, _heads(("qkv", 48), ("rate", 4))),
    Case(
        "gated_delta_net",
        FOUR,
        _heads(("qkv", 48), ("rate", 4), ("gate", 16), ("decay", 4), decay__bias=4, log_speed=4),
    ),
    Case(
        "retention",
        FOUR,
        lambda n: {"qkvg.weight": (96 // n, 16), "out.weight": (16, 32 // n)},
    ),
    Case("rwkv5_time_mixer", FOUR, _rwkv(decay=16)),
    Case("rwkv6_time_mixer", FOUR, _rwkv6),
    Case("lstm", {}, _nothing),
]
