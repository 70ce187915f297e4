"""Measurement of calls on NumPy: `ember_ml.backend.interface.Profiling`."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.backend.interface import Profiling
    from ember_ml.backend.numpy import profiling

    _checked: Profiling = profiling

METHOD = (
    "NumPy computes eagerly: a call's time is that of its native function. The backward pass is a "
    "sweep over the recorded calls with VJP rules; the time of a rule counts for the op that it "
    "differentiates."
)
observer = None


def wait(out: object) -> None:
    """Do nothing: NumPy computes eagerly."""


def untracked() -> AbstractContextManager[None]:
    """Return an empty context: NumPy has no graph."""
    return contextlib.nullcontext()
