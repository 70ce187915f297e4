"""Sets of examples that have none in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.host_tasks.draws import Array, Draws

Make = Callable[[Array, int], tuple[Array, Array]]
"""Makes the inputs and targets of examples, given their indices and the attempt."""
CHUNK = 2048
"""Examples made at once, so that little memory is needed."""
ATTEMPTS = 100


def draws(seed: int, split: int, indices: Any, attempt: int) -> Draws:
    """The random numbers of examples."""
    return Draws(seed, split, np.asarray(indices), attempt)


def generate(make: Make, count: int) -> tuple[Array, Array]:
    """So many examples."""
    parts = [make(np.arange(at, min(at + CHUNK, count)), 0) for at in range(0, count, CHUNK)]
    inputs, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
    return inputs, targets


def generate_apart(make: Make, count: int, others: Sequence[Array]) -> tuple[Array, Array] | None:
    """So many examples that are among no others; None if there are not so many."""
    taken = {row for other in others for row in _keys(other)}
    inputs, targets = generate(make, count)
    for attempt in range(1, ATTEMPTS + 1):
        again = np.array([at for at, row in enumerate(_keys(inputs)) if row in taken], np.int64)
        if not len(again):
            return inputs, targets
        inputs[again], targets[again] = make(again, attempt)
    return None


def _keys(rows: Array) -> list[bytes]:
    """Something for each row that is equal if the rows are."""
    return [row.tobytes() for row in np.ascontiguousarray(rows)]
