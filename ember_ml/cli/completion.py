"""Names for the shell to complete."""

from __future__ import annotations

import re
from collections.abc import Callable

Completions = list[tuple[str, str]]
"""Names, with what they are."""


def backends(incomplete: str) -> list[str]:
    """Names of backends."""
    from ember_ml.backend import BACKENDS

    return [name for name in BACKENDS if name.startswith(incomplete)]


def devices(incomplete: str) -> list[str]:
    """Names of the active backend's devices."""
    from ember_ml.backend.devices import available_devices

    return [name for name in available_devices() if name.startswith(incomplete)]


def scales(incomplete: str) -> Completions:
    """Names of MAD's scales."""
    from ember_ml.mad import SCALES

    return [(name, each.summary) for name, each in SCALES.items() if name.startswith(incomplete)]


def components(*kinds: str) -> Callable[[str], Completions]:
    """A completion of the names of some kinds."""

    def complete(incomplete: str) -> Completions:
        from ember_ml.registry import available

        return [
            (name, entry.summary)
            for kind in kinds
            for entry in available(kind)
            if (name := entry.name.partition("/")[2]).startswith(incomplete)
        ]

    return complete


def patterns(incomplete: str) -> Completions:
    """Patterns such as "attention+swi", whose last name is completed."""
    found = re.fullmatch(r"(.*[\s+,()=])?([^\s+,()=]*)", incomplete, re.DOTALL)
    head, last = (found[1] or "", found[2]) if found else ("", incomplete)
    return [(head + name, text) for name, text in components("layers", "blocks")(last)]
