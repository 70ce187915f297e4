"""Self-training that is killed at any moment, and resumed: the result is that of one run."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

from ember_ml.data import augmentation
from ember_ml.nn.pipeline import SelfTrainingPipeline
from ember_ml.training.callbacks import Callback
from ember_ml.training.selection import Adaptive, Threshold
from tests.robustness.scale import spread

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)).astype("float32")
Y = (X[:, 0] > 0).astype("int64") + (X[:, 1] > 0)
MODEL = {"type": "layers/mlp", "in_features": 3, "hidden_features": [6], "out_features": 3}
MODES = {
    "rounds": {"select": Threshold(0.4), "augment": augmentation.Jitter(0.1), "cumulative": True},
    "consistency": {
        "mode": "consistency",
        "select": Adaptive(0.9),
        "strong": augmentation.Jitter(0.3),
        "ratio": 2,
        "trainer": {"learning_rate": 0.05, "ema": 0.9},
    },
}


class KillAt(Callback):
    """Kills the process at a step of a round.

    Args:
        place: Name of the round's folder, and number of the step.
    """

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place

    def on_step_end(self, trainer, record) -> None:
        if (trainer.callbacks[-1].folder.name, trainer.step) == self.place:
            os.kill(os.getpid(), signal.SIGKILL)


def run(folder: Path, mode: str, callbacks=()) -> SelfTrainingPipeline:
    options = {"trainer": {"learning_rate": 0.05}, "batch_size": 4, **MODES[mode]}
    pipeline = SelfTrainingPipeline(
        MODEL, folder=folder, rounds=2, epochs=2, checkpoint_every=2, calibrate=True, **options
    )
    data = (X[:12], Y[:12]), X[12:40], (X[40:], Y[40:])
    return pipeline.fit(*data, resume=True, progress=False, callbacks=callbacks)


Moment = int | tuple[str, int]
"""Number of a write, or folder of a round and number of a step."""


def killed(folder: Path, mode: str, moment: Moment) -> bool:
    """Run in a process that is killed before a write or after a step; return whether it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of the test run
        child = os.fork()
    if child == 0:
        try:
            if isinstance(moment, int):
                _kill_before(moment)
            run(folder, mode, [KillAt(moment)] if isinstance(moment, tuple) else ())
        except BaseException:
            os._exit(3)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def _kill_before(write: int) -> None:
    """Kill this process before the n-th rename, which completes an atomic write."""
    rename, count = os.replace, 0

    def replace(*args, **kwargs):
        nonlocal count
        count += 1
        if count == write:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*args, **kwargs)

    os.replace = replace


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a run that must be equal to the byte."""
    names = ["history.json", "model.safetensors", "results.json"]
    return {name: (folder / name).read_bytes() for name in names} | {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("pseudo_*")
    }


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("mode", MODES)
def test_a_run_killed_many_times_ends_as_if_undisturbed(mode: str, tmp_path: Path) -> None:
    """Each process continues the last one, and is killed before a write or after a step."""
    run(tmp_path / "whole", mode)
    moments: list[Moment] = [1, 2, ("round-00", 3), 6, ("round-01", 3), ("round-02", 1), 3]
    assert [killed(tmp_path / "parts", mode, moment) for moment in moments] == [True] * 7
    run(tmp_path / "parts", mode)
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(content(tmp_path / "whole")) == (5 if mode == "rounds" else 3)


@pytest.mark.usefixtures("on_numpy")
def test_every_write_may_be_the_last(tmp_path: Path) -> None:
    """One kill at each of several writes of a whole run, resumed at once."""
    run(tmp_path / "whole", "rounds")
    expected = content(tmp_path / "whole")
    for write in spread((3, 10, 17, 24, 31), 2):
        folder = tmp_path / str(write)
        assert killed(folder, "rounds", write)
        run(folder, "rounds")
        assert content(folder) == expected, write
