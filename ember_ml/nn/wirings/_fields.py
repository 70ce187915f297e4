"""Types of the parameters of wirings, with their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from ember_ml.configs.fields import AnyComponent, ComponentLike, Count, Size, ValidatedAs
from ember_ml.registry.base import close_matches

_RULES = ("sum", "concat", "gate")
_KEYS = ("from", "to", "delayed")


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _name_blocks(value: Any) -> Any:
    """Convert a list of blocks to a dict."""
    if not isinstance(value, (list, tuple)):
        return value
    named: dict[str, Any] = {}
    for at, block in enumerate(value):
        name = getattr(block, "name", None) or f"block_{at}"
        if name in named:
            raise ValueError(f"two blocks are named {name!r}")
        named[name] = block
    return named


def _check_connection(value: Any) -> Any:
    """Check (source, target) or {"from": source, "to": target, "delayed": true}."""
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


def _check_merge(value: Any) -> Any:
    """Check one rule, or a dict of rules by block."""
    rules = dict(value) if isinstance(value, Mapping) else {"": value}
    for name, rule in rules.items():
        if rule not in _RULES:
            raise ValueError(f"{name!r} " * bool(name) + "should be 'sum', 'concat' or 'gate'")
    return rules if isinstance(value, Mapping) else value


Names = Annotated[
    str | Sequence[str],
    ValidatedAs(Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]),
]
"""One or several names; a tuple in the config."""
BlocksLike: TypeAlias = Mapping[str, ComponentLike] | Sequence[ComponentLike]
Blocks = Annotated[
    BlocksLike,
    ValidatedAs(Annotated[dict[str, AnyComponent], BeforeValidator(_name_blocks)]),
]
"""Components of any kind, by name or in order; a dict in the config."""
ConnectionLike: TypeAlias = Sequence[Any] | Mapping[str, Any]
ConnectionField = Annotated[
    ConnectionLike,
    PlainValidator(_check_connection),
    WithJsonSchema({"type": ["array", "object"], "description": "[source, target]"}),
]
Connections = Annotated[Sequence[ConnectionLike], ValidatedAs(tuple[ConnectionField, ...])]
MergeField = Annotated[
    str | Mapping[str, str],
    PlainValidator(_check_merge),
    WithJsonSchema({"anyOf": [{"enum": list(_RULES)}, {"type": "object"}]}),
]
"""Merge rule of all blocks, or rules by block."""
Width = Size | Literal["tokens"]
"""Number of features of an input; "tokens" for integers of shape (batch, time)."""
Features: TypeAlias = int | str | Mapping[str, int | str]
"""Number of features of each input: one for all, or by name."""
SynapseLike: TypeAlias = tuple[int, int, int]
Synapses = Annotated[
    Sequence[SynapseLike],
    ValidatedAs(tuple[tuple[Count, Count, Annotated[int, Field(strict=True)]], ...]),
]
"""(source, destination, polarity) triples; polarity 1 excites and -1 inhibits."""
Sparsity = Annotated[float, Field(ge=0.1, le=0.9)]
