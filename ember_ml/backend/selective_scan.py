"""Shapes of the selective scan, shared by the ops and the backends."""

from __future__ import annotations

from typing import Any

from ember_ml._core.errors import ShapeError


def check(u: Any, dt: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    """Raise a ShapeError unless the shapes agree.

    Args:
        u: (batch, time, channels).
        dt: In the shape of u.
        a: (channels, states).
        b: (batch, time, states).
        c: In the shape of b.
        d: (channels,), or None.
    """
    if u.ndim == 3 and a.ndim == 2:
        states = (*u.shape[:2], a.shape[1])
        right = dt.shape == u.shape and a.shape[0] == u.shape[2] and b.shape == c.shape == states
        if right and (d is None or d.shape == u.shape[2:]):
            return
    shapes = ", ".join(str((*x.shape,)) for x in (u, dt, a, b, c, d) if x is not None)
    raise ShapeError(
        f"selective_scan: got shapes {shapes}; expected u and dt (batch, time, channels), "
        "a (channels, states), b and c (batch, time, states) and d (channels,)"
    )
