"""Ops whose results are constants to gradients."""

from __future__ import annotations

_PIECEWISE = "the result is piecewise constant in the values"
_DISTINCT = "elements are compared for equality, and the number of distinct ones is discrete"
_SHAPE_ONLY = "the result depends on the shape and dtype only, not on the values"

CONSTANT: dict[str, str] = {
    "elementwise.floor_divide": _PIECEWISE,
    "floating.nextafter": "the result is a neighbor in the dtype, not a function of real numbers",
    "gradients.stop_gradient": "the op is meant to stop gradients",
    "creation.zeros_like": _SHAPE_ONLY,
    "creation.ones_like": _SHAPE_ONLY,
    "creation.empty_like": _SHAPE_ONLY,
    "creation.full_like": _SHAPE_ONLY,
    "rounding.ceil": _PIECEWISE,
    "rounding.floor": _PIECEWISE,
    "rounding.round": _PIECEWISE,
    "rounding.trunc": _PIECEWISE,
    "sets.intersect1d": _DISTINCT,
    "sets.setdiff1d": _DISTINCT,
    "sets.union1d": _DISTINCT,
    "sets.unique": _DISTINCT,
    "sets.unique_all": _DISTINCT,
    "sets.unique_counts": _DISTINCT,
    "sets.unique_inverse": _DISTINCT,
    "sets.unique_values": _DISTINCT,
}
"""Key of an op -> the reason. Integer and bool results are constants in any case."""
