"""Helpers that run the command line."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from typer import testing

from ember_ml.cli.app import app

# Creating the command takes longer than most commands, and its result is always the same.
testing._get_command = functools.cache(testing._get_command)


def ember(*words: Any, code: int = 0) -> testing.Result:
    """Run the command in this process and check its exit code."""
    result = testing.CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def ember_json(*words: Any) -> Any:
    """Return the JSON output of a command."""
    return json.loads(ember(*words, "--json").stdout)


@contextlib.contextmanager
def running(*words: Any, folder: Any = None) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a new process group, which is killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ember_ml", *(str(word) for word in words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        preexec_fn=restore_interrupts,
    )
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def restore_interrupts() -> None:
    """Let Ctrl-C end a process whose parent, such as a shell in the background, ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
