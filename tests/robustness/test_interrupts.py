"""Ctrl-C, SIGTERM and SIGKILL during training; full disks."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest

from ember_ml.backend import use_backend
from ember_ml.training import TrainingInterrupted, TrainingTerminated
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger
from tests.robustness.regression import X, Y, trainer
from tests.robustness.scale import amount

pytestmark = pytest.mark.usefixtures("on_numpy", "default_signal_handlers")


class At(Callback):
    """Runs a function at the end of a step."""

    def __init__(self, step: int, action) -> None:
        self.step, self.action = step, action

    def on_step_end(self, trainer, record) -> None:
        if trainer.step == self.step:
            self.action()


def send(*numbers: int):
    def act() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    return act


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGINT, TrainingInterrupted), (signal.SIGTERM, TrainingTerminated)],
)
def test_a_signal_saves_and_ends_a_script_of_several_fits(number, error, tmp_path: Path) -> None:
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    reached = []
    with pytest.raises(error) as caught:  # noqa: PT012
        for run in range(3):
            reached.append(run)
            trainer(At(7, send(number)), Checkpoint(tmp_path)).fit((X, Y), epochs=9)
    assert reached == [0]
    assert isinstance(caught.value, KeyboardInterrupt | SystemExit)
    assert getattr(caught.value, "code", 130) in (130, 143)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    again = trainer().resume(tmp_path / "last")
    assert again.step == 7
    again.fit((X, Y), epochs=9)
    assert again.history.losses == trainer().fit((X, Y), epochs=9).losses


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    first = trainer(Checkpoint(tmp_path, every_steps=2), At(7, send(signal.SIGINT, signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt) as caught:
        first.fit((X, Y), epochs=9)
    assert not isinstance(caught.value, TrainingInterrupted)
    assert trainer().resume(tmp_path / "last").step == 6


def test_the_programs_own_handler_of_sigterm_runs_after_the_save(tmp_path: Path) -> None:
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with pytest.raises(TrainingTerminated):
            trainer(At(3, send(signal.SIGTERM)), Checkpoint(tmp_path)).fit((X, Y), epochs=9)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]
    assert trainer().resume(tmp_path / "last").step == 3


def test_without_a_checkpoint_callback_no_earlier_checkpoint_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for step in (3, 5):
        with pytest.raises(TrainingInterrupted):
            trainer(At(step, send(signal.SIGINT))).fit((X, Y), epochs=9)
    assert trainer().resume("ember-interrupted").step == 3
    assert trainer().resume("ember-interrupted-2").step == 5


def _train_for_ever(folder: Path, ready) -> None:
    os.chdir(folder)
    with use_backend("numpy"):
        trainer(At(2, ready.set)).fit((X, Y), epochs=10**9)


def test_a_worker_without_a_folder_ends_when_its_parent_terminates_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    worker = context.Process(target=_train_for_ever, args=(tmp_path, ready))
    worker.start()
    assert ready.wait(120)
    worker.terminate()
    worker.join()
    assert worker.exitcode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
    import os, signal, sys
    import numpy as np
    import ember_ml
    from ember_ml import nn, ops
    from ember_ml.training import Trainer
    from ember_ml.training.callbacks import Callback, Checkpoint
    from ember_ml._core.folders import holds

    signal.signal(signal.SIGINT, signal.default_int_handler)
    ember_ml.set_backend("numpy")
    folder = sys.argv[1]
    x = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")


    class Steps(Callback):
        def on_step_end(self, trainer, record):
            print("step", trainer.step, flush=True)


    def train(steps):
        ops.random.set_seed(1)
        callbacks = [Checkpoint(folder, every_steps=1, keep=2), Steps()]
        trainer = Trainer(
            nn.layers.Dense(3, 1),
            "mse",
            optimizer="adamw",
            seed=1,
            progress=False,
            callbacks=callbacks,
        )
        if holds(f"{folder}/last", "config.json"):
            trainer.resume(f"{folder}/last")
        trainer.fit((x, x.sum(axis=1, keepdims=True)), until_step=steps, batch_size=8)
        for record in trainer.history.steps:
            print("loss", record["loss"].hex(), flush=True)


    for line in sys.stdin:  # each line starts a process that trains up to a step
        child = os.fork()
        if not child:
            train(int(line))
            os._exit(0)
        print("process", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runs:
    """Processes that train, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, steps: int) -> int:
        """Start a process that trains up to a step; return its id."""
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return int(self.wait("process"))

    def wait(self, word: str) -> str:
        """Return what the next line with the word says."""
        return self.read(word)[-1]

    def read(self, word: str) -> list[str]:
        """Return the values of all lines up to one with the word."""
        values = []
        while True:
            kind, _, value = self._process.stdout.readline().strip().partition(" ")
            assert kind, "the process ended"
            values.append(value)
            if kind == word:
                return values


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_training_killed_many_times_ends_as_if_undisturbed(number, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    rng = random.Random(int(number))
    folder, reached = tmp_path / "run", 0
    words = [sys.executable, str(script), str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        runs = Runs(shell)
        for _ in range(amount(3, 100)):
            child = runs.start(10**9)
            for _ in range(2):  # the first is saved then
                runs.wait("step")
            time.sleep(rng.uniform(0.0, 0.1))
            os.kill(child, number)
            assert int(runs.wait("ended")) == (143 if number == signal.SIGTERM else -number)
            step = trainer().resume(folder / "last").step
            assert step > reached
            reached = step
        runs.start(reached + 5)
        for _ in range(5):
            runs.wait("step")
        losses = runs.read("ended")[:-1]
        shell.stdin.close()
    whole = trainer()
    whole.fit((X, Y), until_step=reached + 5, batch_size=8)
    assert losses == [loss.hex() for loss in whole.history.losses]
    assert len(losses) == reached + 5
    names = {path.name for path in folder.iterdir()}
    assert names == {"last", f"step-{reached + 4:08d}", f"step-{reached + 5:08d}"}


def test_a_full_disk_does_not_end_the_training(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        try:
            os._exit(_train_with_a_file_limit(tmp_path))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    again = trainer().resume(tmp_path / "last")
    assert again.step == 8  # the last checkpoint, after there was space again


def _train_with_a_file_limit(folder: Path) -> int:
    """Train while files cannot be written for some steps; return 0 if all went as it should."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write raises OSError instead

    def limit(size: int):
        def act() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        return act

    def readable() -> None:
        assert trainer().resume(folder / "last").step in (2, 3)

    parts = [
        Checkpoint(folder, every_steps=1, keep=2),
        CSVLogger(folder / "log.csv", every_steps=1),
        At(3, limit(100)),
        At(6, readable),
        At(6, limit(resource.RLIM_INFINITY)),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer(*parts).fit((X, Y), steps=8, batch_size=8)
    texts = [str(each.message) for each in caught]
    wanted = f"{folder / 'last'} could not be saved at step 4: [Errno 27] File too large"
    kept = sorted(path.name for path in folder.glob("step-*"))
    expected = kept == ["step-00000007", "step-00000008"] and any(wanted in text for text in texts)
    return 0 if expected else 1
