"""Ops whose results are constants to a gradient, whatever their operands."""

from __future__ import annotations

_VALUES = "the result does not depend on the values, only on shape and dtype"

CONSTANT: dict[str, str] = {
    "gradients.stop_gradient": "that is what it is for",
    "creation.zeros_like": _VALUES,
    "creation.ones_like": _VALUES,
    "creation.empty_like": _VALUES,
    "creation.full_like": _VALUES,
}
"""Op -> why. Results of integers and bools are constants anyway."""
