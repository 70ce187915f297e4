"""CPU time of `import ember_ml` against `import numpy`, measured in turns in fresh processes.

Both run from a bytecode cache, as installed packages do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

REPEATS = 15
GOAL = 1.3


def cpu_seconds(statement: str, cache: str) -> float:
    """Return the CPU time of a statement in a new interpreter, without startup."""
    code = (
        f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(out.stdout)


def main() -> None:
    """Print both times and their ratio."""
    statements = ["import numpy", "import ember_ml", "import ember_ml, numpy"]
    times = dict.fromkeys(statements, float("inf"))
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(REPEATS):
            for statement in statements:
                times[statement] = min(times[statement], cpu_seconds(statement, cache))
    for statement, seconds in times.items():
        ratio = seconds / times["import numpy"]
        print(f"{statement:26} {seconds * 1e3:7.1f} ms  {ratio:.2f}x (goal {GOAL}x)")


if __name__ == "__main__":
    main()
