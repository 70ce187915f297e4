"""Fixtures of the trainer's tests."""

from __future__ import annotations

import pytest

from ember_ml.training.trainer import compile_policy


@pytest.fixture(autouse=True)
def compile_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile from the second batch of a shape on, where it is the default: short runs do both."""
    monkeypatch.setattr(compile_policy, "REPEATS", 1)
    monkeypatch.setattr(compile_policy, "REMAINING", 0)
