"""Amount of work of the robustness tests: small in the test suite, large in `make robustness`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

FULL = os.environ.get("EMBER_ROBUSTNESS") == "full"
"""Whether to run the long versions."""


def amount(short: int, full: int) -> int:
    """Return a number of rounds or seconds: `short` in the test suite, `full` in the long run."""
    return full if FULL else short


def spread(rows: Sequence[T], every: int, start: int = 0) -> list[T]:
    """Return each n-th row of a table in the test suite, and all rows in the long run."""
    return list(rows) if FULL else list(rows[start::every])
