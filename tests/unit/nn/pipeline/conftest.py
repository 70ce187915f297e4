"""Fixtures of the tests of pipelines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.async_pipelines import wait_for_no_threads


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail if a thread of a pipeline outlives the test."""
    yield
    assert wait_for_no_threads() == []
