"""Trainings that the tests launch with `ember launch`, disturb and resume."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ember_ml.distributed import FSDPStrategy, read_environment
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint
from tests.distributed import tasks

SETTINGS = "EMBER_TEST_JOB"
"""Environment variable with the settings of `main`, as JSON."""


class Report(Callback):
    """Writes the process id and the step of this process, and makes steps slow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Write them after each step."""
        place = read_environment()
        content = json.dumps([os.getpid(), trainer.step, place.restarts])
        (self._folder / f"new-{place.rank}").write_text(content)
        os.replace(self._folder / f"new-{place.rank}", self._folder / f"process-{place.rank}")
        time.sleep(0.01)


def run(folder: str, steps: int, every: int = 7, timeout: float = 60.0) -> dict[str, Any]:
    """Train, from the last checkpoint if there is one; return the history and the parameters."""
    path = Path(folder)
    trainer = tasks.build(
        "gru",
        FSDPStrategy(timeout=timeout),
        hidden_size=4,
        ema=0.9,
        callbacks=[Checkpoint(path, every_steps=every), Report(path)],
    )
    if (path / "last").exists():
        trainer.resume(path / "last")
    trainer.fit(tasks.data(), until_step=steps)
    return {"history": trainer.history.steps, "parameters": tasks.whole_parameters(trainer)}


def main() -> None:
    """Train as the environment variable says."""
    run(**json.loads(os.environ[SETTINGS]))
