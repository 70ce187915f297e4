"""Damaged files of every format: they read as before, or raise an error of Ember ML.

300 mutations in the test suite, 10,000 with EMBER_ROBUSTNESS=full. A child process reads the files
and watches its memory; a crash of it is a failure of the format that it was reading.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.robustness.scale import amount


def test_damaged_files_are_read_or_refused() -> None:
    count = amount(300, 10_000)
    command = [sys.executable, "-m", "tests.robustness.fuzz", "0", str(count)]
    root = Path(__file__).parents[2]
    child = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    reports = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]
    assert child.returncode == 0, f"after {len(reports)} formats: {child.stderr[-3000:]}"
    assert sum(report["count"] for report in reports) >= count
    problems = [each for report in reports for each in report["problems"]]
    assert not problems, json.dumps(problems[:5], indent=2)
