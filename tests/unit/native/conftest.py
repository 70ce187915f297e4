"""Kernels without the limits below which the backends' own code is faster."""

import pytest

from ember_ml import _native
from ember_ml._native import build, calls
from ember_ml.backend.numpy import kernel_calls


@pytest.fixture
def every_size(monkeypatch):
    """Let the kernels serve arrays of every size, in as many threads as there are."""
    if _native.library is None:
        pytest.fail(f"the tests need the C kernels: {_native.status()}")
    monkeypatch.setattr(kernel_calls, "SMALL", 1)
    monkeypatch.setattr(calls, "GRAIN", 1)
    monkeypatch.setattr(_native, "threads", 1)
    return monkeypatch


def supported_levels():
    """Return the instruction sets that this processor has."""
    levels = build.levels()[::-1]
    if _native.library is None:  # the tests fail with the reason
        return levels[:1]
    return levels[: _native._open(levels[0]).ember_processor_level() + 1]
