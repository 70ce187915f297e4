"""Rows for `ember_ml.ops.recurrence`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import COMPLEXES, FLOATS, Sample, case, real

KEY = "recurrence.linear_recurrence"


def recurrence(a: Any, b: Any, h0: Any = None, axis: int = 1, reverse: bool = False) -> Any:
    """Compute step by step."""
    a, b = (np.moveaxis(x, axis, 0) for x in np.broadcast_arrays(a, b))
    state = np.zeros(b.shape[1:], b.dtype) + (0 if h0 is None else h0)
    h = np.zeros(b.shape, np.result_type(b, state))
    for at in range(len(b))[:: -1 if reverse else 1]:
        h[at] = state = a[at] * state + b[at]
    return np.moveaxis(h, 0, axis), state


def factors(*shape: int, **options: Any) -> Sample:
    """Return numbers whose products stay small, complex ones too."""
    return real(*shape, low=-0.7, high=0.7, **options)


case(KEY, factors(2, 5, 3), real(2, 5, 3), real(2, 3), reference=recurrence)
case(KEY, factors(40, 1), real(40, 2), real(2), reference=recurrence, axis=0, reverse=True)
case(KEY, factors(2, 70), real(2, 70), reference=recurrence, axis=-1)
case(KEY, factors(2, 4, 3), real(2, 4, 3), reference=recurrence, reverse=True)
case(KEY, factors(2, 1, 3), real(2, 1, 3), real(2, 3), reference=recurrence)
case(KEY, factors(2, 1), real(2, 1), reference=recurrence, reverse=True)
case(KEY, factors(2, 0, 3), real(2, 0, 3), real(2, 3), reference=recurrence)
case(KEY, factors(), real(2, 63, 2), real(), reference=recurrence)
case(KEY, factors(33, 2), real(3, 33, 1), real(1, 2), reference=recurrence, reverse=True)
case(KEY, factors(30, 2, 2), real(2, 2), reference=recurrence, axis=0)
case(KEY, factors(3, 20, transposed=True), real(3, 20, transposed=True), reference=recurrence)
case(KEY, factors(9), real(9), real(), reference=recurrence, axis=0)
case(KEY, factors(2, 0), real(2, 0), reference=recurrence, axis=0)
case(KEY, factors(2, 0), real(2, 0), reference=recurrence)
case(KEY, real(2, 6, low=-2, high=2), real(2, 6), reference=recurrence, dtypes=("int32", "bool"))
case(
    KEY,
    factors(2, 300, 9),
    real(2, 300, 9),
    reference=recurrence,
    dtypes=(*FLOATS, *COMPLEXES),
)
case(KEY, factors(1100), real(1100), reference=recurrence, axis=0, dtypes=FLOATS)
case(
    KEY,
    factors(2, 9, special=True),
    real(2, 9),
    reference=recurrence,
    dtypes=FLOATS,
)


def adjoint(
    a: Any, states: Any, g: Any, g_last: Any, h0: Any = None, axis: int = 1, reverse: bool = False
) -> Any:
    """Compute the gradients of a, b and h0 step by step, from the last step to the first."""
    a, states, g = (np.moveaxis(x, axis, 0) for x in np.broadcast_arrays(a, states, g))
    order = range(len(g))[:: 1 if reverse else -1]
    into, of_a, later = np.zeros(g.shape), np.zeros(g.shape), g_last
    for at in order:
        into[at] = g[at] + later
        before = at + 1 if reverse else at - 1
        first = np.zeros(g.shape[1:]) if h0 is None else h0
        of_a[at] = into[at] * (states[before] if 0 <= before < len(g) else first)
        later = a[at] * into[at]
    return np.moveaxis(of_a, 0, axis), np.moveaxis(into, 0, axis), later


ADJOINT = "recurrence._linear_recurrence_adjoint"
for steps, backward in [(5, False), (1, True), (40, True)]:
    case(
        ADJOINT,
        *(factors(2, steps, 3), real(2, steps, 3), real(2, steps, 3), real(2, 3), real(2, 3)),
        reference=adjoint,
        reverse=backward,
        dtypes=FLOATS,
    )
case(ADJOINT, factors(4, 1), *[real(4, 2)] * 2, real(2), reference=adjoint, axis=0, dtypes=FLOATS)
