"""Damaged files of every format: they read as before, or raise an error of Ember ML.

350 mutations in the test suite, 12,000 with EMBER_ROBUSTNESS=full. A child process reads the files
and watches its memory; a crash of it is a failure of the format that it was reading.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.robustness.scale import amount


def problems(what: str, count: int) -> list[dict[str, object]]:
    """Return what goes wrong when a child process reads damaged files."""
    command = [sys.executable, "-m", "tests.robustness.fuzz", what, "0", str(count)]
    root = Path(__file__).parents[2]
    child = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    reports = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
    assert child.returncode == 0, f"after {len(reports)} formats: {child.stderr[-3000:]}"
    assert sum(report["count"] for report in reports) >= count
    return [each for report in reports for each in report["problems"]]


def test_damaged_files_are_read_or_refused() -> None:
    found = problems("files", amount(300, 10_000))
    assert not found, json.dumps(found[:5], indent=2)


def test_large_numbers_in_configs_are_refused() -> None:
    found = problems("configs", amount(50, 2000))
    assert not found, json.dumps(found[:5], indent=2)
