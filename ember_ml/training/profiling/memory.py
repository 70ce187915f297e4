"""Peak memory, and the memory that each layer keeps, from the marks of a recorded step."""

from __future__ import annotations

from collections.abc import Iterable

from ember_ml.backend.interface import MemoryChange
from ember_ml.training.layer_marks import ENTER, EXIT


def peak_of(changes: Iterable[MemoryChange]) -> int:
    """Return the largest growth of the memory in use, in bytes.

    Args:
        changes: The recorded changes, in order.

    Example:
        >>> from ember_ml.backend.interface import MemoryChange
        >>> from ember_ml.training.profiling.memory import peak_of
        >>> peak_of([MemoryChange("", 10, 20), MemoryChange("", -5, 15)])
        25
    """
    used = peak = 0
    for each in changes:
        peak = max(peak, used + each.peak)
        used += each.change
    return peak


def kept_by_layer(changes: Iterable[MemoryChange]) -> dict[str, int]:
    """Return the bytes that each layer keeps after its forward pass, in order.

    Args:
        changes: The recorded changes with the marks of `layer_marks`.
    """
    used = 0
    entered: dict[str, int] = {}
    kept: dict[str, int] = {}
    for each in changes:
        used += each.change
        if each.mark.startswith(ENTER):
            entered[each.mark.removeprefix(ENTER)] = used
        elif each.mark.startswith(EXIT):
            name = each.mark.removeprefix(EXIT)
            kept.setdefault(name, max(0, used - entered[name]))
    return kept
