"""Fixtures of the trainer's tests."""

from __future__ import annotations

import pytest

from ember_ml.training.trainer import compiled_step


@pytest.fixture(autouse=True)
def compile_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile from the second batch of a shape on, where it is the default: short runs do both."""
    monkeypatch.setattr(compiled_step, "REPEATS", 1)
    monkeypatch.setattr(compiled_step, "REMAINING", 0)
