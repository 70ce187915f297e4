"""Fixtures of the profiles' tests."""

from __future__ import annotations

import pytest

from ember_ml.training.profiling import machine


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the machine with small matrices and few calls."""
    monkeypatch.setattr(machine, "SIZES", (32, 64))
    monkeypatch.setattr(machine, "CALLS", 10)
    monkeypatch.setattr(machine, "REPEATS", 2)
