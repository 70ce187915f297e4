"""CPU time of `import ember_ml` against `import numpy`, in fresh processes that take turns."""

from __future__ import annotations

import subprocess
import sys

REPEATS = 15
GOAL = 1.3


def cpu_seconds(statement: str) -> float:
    """User and system time of the statement in a new interpreter, without its own start."""
    code = (
        f"import time; start = time.process_time(); {statement}; print(time.process_time() - start)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(out.stdout)


def main() -> None:
    """Print both times and their ratio."""
    statements = ["import numpy", "import ember_ml", "import ember_ml, numpy"]
    times = dict.fromkeys(statements, float("inf"))
    for _ in range(REPEATS):
        for statement in statements:
            times[statement] = min(times[statement], cpu_seconds(statement))
    for statement, seconds in times.items():
        print(
            f"{statement:26} {seconds * 1e3:7.1f} ms  "
            f"{seconds / times['import numpy']:.2f}x (goal {GOAL}x)"
        )


if __name__ == "__main__":
    main()
