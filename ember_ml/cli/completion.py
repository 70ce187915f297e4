"""Shell completion of names."""

from __future__ import annotations

import re
from collections.abc import Callable

Completions = list[tuple[str, str]]
"""Names with their descriptions."""


def backends(incomplete: str) -> list[str]:
    """Return the names of backends that start with the text."""
    from ember_ml.backend import BACKENDS

    return [name for name in BACKENDS if name.startswith(incomplete)]


def devices(incomplete: str) -> list[str]:
    """Return the names of the active backend's devices that start with the text."""
    from ember_ml.backend.devices import available_devices

    return [name for name in available_devices() if name.startswith(incomplete)]


def scales(incomplete: str) -> Completions:
    """Return the names of MAD's scales that start with the text."""
    from ember_ml.mad import SCALES

    return [(name, each.summary) for name, each in SCALES.items() if name.startswith(incomplete)]


def components(*kinds: str) -> Callable[[str], Completions]:
    """Return a completion function for the names of some kinds of components."""

    def complete(incomplete: str) -> Completions:
        from ember_ml.registry import available

        return [
            (entry.bare, entry.summary)
            for kind in kinds
            for entry in available(kind)
            if entry.bare.startswith(incomplete)
        ]

    return complete


def patterns(incomplete: str) -> Completions:
    """Return completions of the last layer name of a pattern such as "attention+swi"."""
    match = re.fullmatch(r"(.*[\s+,()=])?([^\s+,()=]*)", incomplete, re.DOTALL)
    head, last = (match[1] or "", match[2]) if match else ("", incomplete)
    return [(head + name, text) for name, text in components("layers", "blocks")(last)]
