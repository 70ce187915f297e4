"""For ops whose results are not unique: something unique to differentiate in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops

MEASURES: dict[str, Callable[[Any], Any]] = {
    # eigenvectors up to a phase: the projectors' entries
    "linearalg.decompositions.eigh": lambda out: (
        out[0],
        ops.expand_dims(out[1], -3) * ops.expand_dims(ops.conj(out[1]), -2),
    ),
}
