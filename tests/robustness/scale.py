"""Amount of work of the robustness tests: small in the test suite, large in `make robustness`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

from ember_ml.backend import BACKENDS
from ember_ml.registry import Entry
from tests.backends import TRACING

T = TypeVar("T")

FULL = os.environ.get("EMBER_ROBUSTNESS") == "full"
"""Whether to run the long versions."""


def amount(short: int, full: int) -> int:
    """Return a number of rounds or seconds: `short` in the test suite, `full` in the long run."""
    return full if FULL else short


def spread(rows: Sequence[T], every: int, start: int = 0) -> list[T]:
    """Return each n-th row of a table in the test suite, and all rows in the long run."""
    return list(rows) if FULL else list(rows[start::every])


def compile_each(entries: Sequence[Entry]) -> pytest.MarkDecorator:
    """Parametrize a test of compiled components: `backend` and `entry`.

    Where the compiler is slow, the test suite runs a sample, and `make robustness` runs all.
    """
    rows = [
        pytest.param(name, entry, id=f"{name}-{entry.name}")
        for name in BACKENDS
        for entry in (spread(entries, 8, start=1) if name in TRACING else entries)
    ]
    return pytest.mark.parametrize(("backend", "entry"), rows, indirect=["backend"])
