"""Programs that run with the Ember ML of another source tree, in turns with this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
HERE = Path(__file__).resolve().parents[1]


class TreeProcess:
    """Process in one thread that answers each line of its standard input with a line.

    Args:
        tree: Folder with `ember_ml`.
        program: The script.
        arguments: Arguments of the script.
    """

    def __init__(self, tree: Path, program: str, *arguments: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(tree.resolve())}
        self._process = subprocess.Popen(
            [sys.executable, program, *arguments],
            env=environment | dict.fromkeys(THREADS, "1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> str:
        """Return the next line of the program; empty if it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
