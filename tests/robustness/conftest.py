"""Fixtures of the robustness tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def default_signal_handlers() -> Iterator[None]:
    """Install Python's default handlers: Ray replaces them, and background jobs ignore SIGINT."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
