"""Architectures by name: which layers a model of MAD is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml.configs.errors import ConfigError
from ember_ml.configs.patterns import check_names, items_of

NUM_LAYERS = 4
"""How many layers the models of MAD have."""


class Architecture(NamedTuple):
    """A name, and the layers it stands for."""

    name: str
    layers: str


def architecture(pattern: str, name: str | None = None) -> Architecture:
    """The architecture of a pattern, which is repeated until it has four layers.

    Args:
        pattern: such as "attention+swiglu", or "hyena+swiglu+attention+swiglu".
        name: what to call it; the pattern itself if not given.

    Example:
        >>> from ember_ml.mad.architecture import architecture
        >>> architecture("mamba+swiglu").layers
        '(mamba+swiglu)x2'
    """
    count = len(_layers_of(pattern))
    times = NUM_LAYERS // count if NUM_LAYERS % count == 0 else 1
    layers = pattern if times == 1 else f"({pattern})x{times}"
    return Architecture(name or pattern, layers)


def _layers_of(pattern: str) -> list[Any]:
    """The layers of a pattern; an error with close matches if one is unknown."""
    try:
        return items_of(check_names(pattern))
    except ConfigError as error:
        raise ConfigError(f"architecture {pattern!r}", error.problems) from None
