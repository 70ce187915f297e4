"""Configs of the wirings of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Component, Count, Size
from ember_ml.configs.wirings.neurons import Sparsity
from ember_ml.registry.base import close_matches

RULES = ("sum", "concat", "gate")
"""What becomes of the outputs that meet at a block."""
Width = Size | Literal["tokens"]
"""How many features an input has; "tokens" if it is (batch, time) of integers."""


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _by_name(value: Any) -> Any:
    """Blocks in order get names."""
    if not isinstance(value, (list, tuple)):
        return value
    named: dict[str, Any] = {}
    for at, block in enumerate(value):
        name = getattr(block, "name", None) or f"block_{at}"
        if name in named:
            raise ValueError(f"two blocks are named {name!r}")
        named[name] = block
    return named


_KEYS = ("from", "to", "delayed")


def _connection(value: Any) -> Any:
    """(source, target), or {"from": source, "to": target, "delayed": true}."""
    if isinstance(value, Mapping):
        for key in value:
            if key not in _KEYS:
                raise ValueError(f"there is no key {key!r}{close_matches(str(key), _KEYS)}")
        value = (value.get("from"), value.get("to"), value.get("delayed", False))
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 3):
        raise ValueError("should be [source, target], or have the keys from, to, delayed")
    source, target, delayed = (*value, False)[:3]
    if not isinstance(source, str) or not isinstance(target, str):
        raise ValueError("should name a source and a target")
    if not isinstance(delayed, bool):
        raise ValueError("delayed should be true or false")
    return {"from": source, "to": target, "delayed": True} if delayed else (source, target)


def _merge(value: Any) -> Any:
    """One rule, or rules by block."""
    rules = dict(value) if isinstance(value, Mapping) else {"": value}
    for name, rule in rules.items():
        if rule not in RULES:
            raise ValueError(f"{name!r} " * bool(name) + "should be 'sum', 'concat' or 'gate'")
    return rules if isinstance(value, Mapping) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""One or several names."""
Blocks = Annotated[dict[str, Annotated[Any, Component("")]], BeforeValidator(_by_name)]
"""Components of any kind by name, or in order."""
ConnectionField = Annotated[
    Any,
    PlainValidator(_connection),
    WithJsonSchema({"type": ["array", "object"], "description": "[source, target]"}),
]

MergeField = Annotated[
    Any,
    PlainValidator(_merge),
    WithJsonSchema({"anyOf": [{"enum": list(RULES)}, {"type": "object"}]}),
]


class GraphWiringConfig(Config):
    """A graph of blocks."""

    component: ClassVar[str] = "wirings/graph"
    inputs: Names = ("input",)
    blocks: Blocks = ()  # type: ignore[assignment]
    connections: tuple[ConnectionField, ...] = ()
    outputs: Names | None = None
    merge: MergeField = "sum"
    features: Width | dict[str, Width] | None = None
    name: str | None = None


class SequentialWiringConfig(Config):
    """Blocks one after the other."""

    component: ClassVar[str] = "wirings/sequential"
    blocks: Blocks = ()  # type: ignore[assignment]
    name: str | None = None


class ResidualWiringConfig(Config):
    """Blocks one after the other, each added to its input."""

    component: ClassVar[str] = "wirings/residual"
    blocks: Blocks = ()  # type: ignore[assignment]
    name: str | None = None


class NCPWiringConfig(Config):
    """Blocks that share the neurons of a neural circuit policy."""

    component: ClassVar[str] = "wirings/ncp_blocks"
    num_inputs: Size
    num_outputs: Size
    num_hidden: Size
    sparsity_level: Sparsity = 0.5
    seed: Count = 22222
    blocks: Blocks = ()  # type: ignore[assignment]
    name: str | None = None
