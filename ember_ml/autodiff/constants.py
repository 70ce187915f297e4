"""Ops whose results are constants to a gradient, whatever their operands."""

from __future__ import annotations

_STEPS = "the slope is zero, but for the steps"
_VALUES = "the result does not depend on the values, only on shape and dtype"

CONSTANT: dict[str, str] = {
    "elementwise.floor_divide": _STEPS,
    "floating.nextafter": "a neighbour in the dtype, not a function of real numbers",
    "gradients.stop_gradient": "that is what it is for",
    "creation.zeros_like": _VALUES,
    "creation.ones_like": _VALUES,
    "creation.empty_like": _VALUES,
    "creation.full_like": _VALUES,
    "rounding.ceil": _STEPS,
    "rounding.floor": _STEPS,
    "rounding.round": _STEPS,
    "rounding.trunc": _STEPS,
}
"""Op -> why. Results of integers and bools are constants anyway."""
