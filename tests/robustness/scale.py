"""Amount of work of the robustness tests: small in the test suite, large in `make robustness`."""

from __future__ import annotations

import os

FULL = os.environ.get("EMBER_ROBUSTNESS") == "full"
"""Whether to run the long versions."""


def amount(short: int, full: int) -> int:
    """Return a number of rounds or seconds: `short` in the test suite, `full` in the long run."""
    return full if FULL else short
