"""The typed user code that `make types` checks also runs, on every backend."""

from __future__ import annotations

from pathlib import Path

from tests.typing import consumer


def test_the_consumer_runs(backend: str, tmp_path: Path) -> None:
    consumer.main(tmp_path / "model")
