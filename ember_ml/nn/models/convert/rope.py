"""Rotary embeddings in a config.json of transformers."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from ember_ml.nn.layers.sequence_mixing.attention import SelfAttention
from ember_ml.nn.models.convert.settings import Settings
from ember_ml.nn.rope_scalings import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPE,
    RopeScaling,
    YaRN,
)

LENGTH = "original_max_position_embeddings"
TYPES = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")


def read_rope(
    settings: Settings,
    head_features: int,
    *,
    base: float = 10000.0,
    share: float | None = None,
    types: Collection[str] = TYPES,
    field: str | None = None,
) -> dict[str, Any]:
    """Return the options of an attention layer for its rotary embeddings.

    Args:
        settings: The settings.
        head_features: Number of features of a head.
        base: Default of the base.
        share: Default of the share of the features of a head that are rotated. None: the family
            rotates all.
        types: Types of scaling that the family has.
        field: Key of `rope_parameters` for layers of one type. Default: the layers are alike.
    """
    rope = _settings(settings, field)
    kind = rope.get("rope_type", rope.get("type", "default"))
    base = rope.number("rope_theta", settings.number("rope_theta", base))
    part = rope.number(
        "partial_rotary_factor", settings.number("partial_rotary_factor", share or 1)
    )
    if share is None and part != 1:
        rope.problems.append(f"partial_rotary_factor={part} is not supported, only 1")
    rotated = int(head_features * part)
    if kind == "su":
        kind = "longrope"
    if kind not in types:
        rope.problems.append(f"rope_type={kind!r} is not supported, only {', '.join(types)}")
        kind = "default"
    scaling = _read_scaling(kind, rope, settings)
    rope.check_unread()
    settings.problems += [f"rope: {problem}" for problem in rope.problems]
    options = {"rope_base": base, "rope_scaling": scaling or None, "rope_features": rotated}
    plain = {"rope_scaling": None, "rope_features": head_features}
    return {name: value for name, value in options.items() if value != plain.get(name, "")}


def _settings(settings: Settings, field: str | None) -> Settings:
    """Return the settings of the rotary embeddings, of layers of one type if `field` is given."""
    given = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    if isinstance(given, dict) and field is not None:
        given = given.get(field) or {}
    flat = isinstance(given, dict) and not any(isinstance(x, dict) for x in given.values())
    return Settings(settings.where, given if flat else {"rope_type": given})


def _read_scaling(kind: str, rope: Settings, settings: Settings) -> dict[str, Any]:
    """Return the config of a scaling; empty for the default."""
    longest = settings.size("max_position_embeddings", 2048)
    outside = settings.get(LENGTH, longest)
    length = rope.size(LENGTH, outside) if kind in ("llama3", "yarn", "longrope") else longest
    rope.get(LENGTH)
    if kind == "default":
        return {}
    if kind == "longrope":
        return _read_long(rope, length, longest)
    factor = rope.number("factor", longest / length if kind == "yarn" else -1.0)
    if factor <= 0:
        rope.problems.append("factor is missing")
    values: dict[str, Any] = {"type": kind, "factor": max(factor, 1e-9)}
    if kind != "linear":
        values["original_length"] = length
    if kind == "llama3":
        values["low_factor"] = rope.number("low_freq_factor", 1.0)
        values["high_factor"] = rope.number("high_freq_factor", 4.0)
    if kind == "yarn":
        values["beta_fast"] = rope.number("beta_fast", 32.0)
        values["beta_slow"] = rope.number("beta_slow", 1.0)
        values["truncate"] = rope.flag("truncate", True)
        values["attention_factor"] = _read_yarn_factor(rope, factor)
    return values


def _read_yarn_factor(rope: Settings, factor: float) -> float | None:
    given = rope.limit("attention_factor")
    scale, whole = rope.number("mscale", 0.0), rope.number("mscale_all_dim", 0.0)
    if given is not None or not (scale and whole) or factor <= 1:
        return given
    return (0.1 * scale * math.log(factor) + 1) / (0.1 * whole * math.log(factor) + 1)


def _read_long(rope: Settings, length: int, longest: int) -> dict[str, Any]:
    values: dict[str, Any] = {"type": "longrope", "original_length": length}
    for name in ("short", "long"):
        values[f"{name}_factors"] = rope.get(f"{name}_factor")
        if not isinstance(values[f"{name}_factors"], list):
            rope.problems.append(f"{name}_factor must be a list of numbers")
    values["factor"] = rope.number("factor", longest / length)
    values["attention_factor"] = rope.limit("attention_factor")
    return values


def write_rope(layer: SelfAttention) -> dict[str, Any]:
    """Return the `rope_parameters` of an attention layer."""
    values = {"rope_theta": layer.rope_base, **_write_scaling(layer.rope_scaling)}
    if layer.rope_features < layer.head_features:
        values["partial_rotary_factor"] = layer.rope_features / layer.head_features
    return values


def _write_scaling(scaling: RopeScaling | None) -> dict[str, Any]:
    match scaling:
        case LinearScaling():
            return {"rope_type": "linear", "factor": scaling.factor}
        case DynamicScaling():
            return {"rope_type": "dynamic", "factor": scaling.factor}
        case Llama3Scaling():
            return {
                "rope_type": "llama3",
                "factor": scaling.factor,
                "low_freq_factor": scaling.low_factor,
                "high_freq_factor": scaling.high_factor,
                LENGTH: scaling.original_length,
            }
        case YaRN():
            return {
                "rope_type": "yarn",
                "factor": scaling.factor,
                "beta_fast": scaling.beta_fast,
                "beta_slow": scaling.beta_slow,
                "attention_factor": scaling.attention_factor,
                "truncate": scaling.truncate,
                LENGTH: scaling.original_length,
            }
        case LongRoPE():
            return {
                "rope_type": "longrope",
                "short_factor": list(scaling.short_factors),
                "long_factor": list(scaling.long_factors),
                "factor": scaling.factor,
                "attention_factor": scaling.attention_factor,
                LENGTH: scaling.original_length,
            }
    return {"rope_type": "default"}


def longest_of(layer: SelfAttention) -> int | None:
    """Return the maximum length that a scaling implies, or None."""
    match layer.rope_scaling:
        case DynamicScaling():
            return layer.rope_scaling.original_length
    return None
