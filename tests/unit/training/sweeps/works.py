"""Functions that the workers of the tests do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


def square(data: Any, report: Any) -> Any:
    return data * data


def count(data: int, report: Any) -> list[bool]:
    """Report 0, 1, 2 ... until told to stop; return the answers."""
    answers: list[bool] = []
    for at in range(data):
        answers.append(report(at))
        if not answers[-1]:
            break
    return answers


def environment(data: Any, report: Any) -> tuple[str, str | None]:
    from ember_ml import get_backend

    return get_backend(), os.environ.get("OMP_NUM_THREADS")


def fail(data: str, report: Any) -> Any:
    report("about to fail")
    if data == "raise":
        raise ValueError("it burst")
    if data == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if data == "memory":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
        return bytearray(2**40)
    return lambda: data  # a result that cannot be sent


def wait_forever(data: Any, report: Any) -> None:
    import time

    report(os.getpid())
    time.sleep(600)


class Unreadable:
    """Value that can be sent, but not restored."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return (int, ("not a number",))


def unreadable(data: Any, report: Any) -> Unreadable:
    """Return a value that the parent process cannot restore."""
    return Unreadable()


def die_with_child(data: str, report: Any) -> None:
    """Die, and leave a process that holds the pipe open and then writes a file."""
    if os.fork() == 0:
        time.sleep(30)
        Path(data).touch()
    os._exit(3)
