"""Ops whose results are constants to a gradient, whatever their operands."""

from __future__ import annotations

_STEPS = "the slope is zero, but for the steps"
_DISTINCT = "elements are told apart by equality, and their number changes in steps"
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
    "sets.intersect1d": _DISTINCT,
    "sets.setdiff1d": _DISTINCT,
    "sets.union1d": _DISTINCT,
    "sets.unique": _DISTINCT,
    "sets.unique_all": _DISTINCT,
    "sets.unique_counts": _DISTINCT,
    "sets.unique_inverse": _DISTINCT,
    "sets.unique_values": _DISTINCT,
}
"""Op -> why. Results of integers and bools are constants anyway."""
