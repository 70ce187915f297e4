"""Objectives that the workers of the tests run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ember_ml.training.tuning import Trial


def parabola(trial: Trial) -> float:
    return -((trial["x"] - 0.5) ** 2)


def climb(trial: Trial) -> float:
    """Report a line whose slope is x."""
    for step in range(1, 9):
        if trial.report(step, step * trial["x"]):
            break
    return 8 * trial["x"]


def troubled(trial: Trial) -> float:
    """Fail in a way that the number of the trial selects."""
    how = trial.id % 6
    if how == 1:
        raise ValueError("it burst")
    if how == 2:
        trial.report(1, float("nan"))
        return float("nan")
    if how == 3:
        raise MemoryError("no more")
    if how == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == 5:
        return float("inf")
    return trial["x"]


def slow(trial: Trial) -> float:
    """Report a few times, and leave a line in a file for each start and end."""
    log = Path(os.environ["TUNING_LOG"])
    _append(log, f"start {trial.id}")
    for step in range(1, 5):
        time.sleep(0.05)
        trial.report(step, trial["x"])
    _append(log, f"end {trial.id}")
    return float(trial["x"])


def _append(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def descend(data: dict, report: object) -> float:
    """Minimize x^2 by gradient descent with noise, from a checkpoint of x; return -|x| smoothed.

    The excess is that of the expectation: a large rate approaches the minimum fast and stays far
    from it, a small one the reverse.
    """
    import json

    segment = data["segment"]
    rate = segment["params"]["trainer.learning_rate"]
    start = segment["start"]
    mean, variance, step = 10.0, 0.0, 0
    if start is not None:
        mean, variance, step = json.loads((Path(start) / "x.json").read_text())
    while step < segment["until_step"]:
        mean *= 1.0 - rate
        variance = (1.0 - rate) ** 2 * variance + rate**2
        step += 1
    folder = Path(segment["end"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "x.json").write_text(json.dumps([mean, variance, step]))
    return -(mean**2 + variance)
