"""Fixtures for every test: one run on each backend of the table."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ember_ml.backend import BACKENDS, available, use_backend


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on each backend; in CI a missing one is a failure."""
    name = request.param
    if name not in available():
        if os.environ.get("CI"):
            pytest.fail(f"the {name} backend is not installed")
        pytest.skip(f"the {name} backend is not installed")
    with use_backend(name):
        yield name
