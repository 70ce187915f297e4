"""A trainer used in ways that its parts were not tested with: nested calls, generators, signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ConcurrentUseError
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint
from ember_ml.training.trainer.interrupt import TrainingInterrupted, TrainingTerminated
from ember_ml.training.trainer.nonfinite import NonFiniteWarning
from tests.robustness.regression import X, Y, trainer

pytestmark = pytest.mark.usefixtures("default_signal_handlers")


def weights(of: Trainer) -> list[list[float]]:
    return [parameter.numpy().tolist() for parameter in of.model.parameters()]


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return ((X[i : i + 5], Y[i : i + 5]) for i in range(0, 40, 5))


class Run(Callback):
    """Calls a function after the second step."""

    saves = True

    def __init__(self, function: Callable[[Trainer], object]) -> None:
        self.function = function

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if trainer.step == 2:
            self.function(trainer)


@pytest.mark.usefixtures("backend")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rollback_discards_gradients_at_other_values() -> None:
    x = X.copy()
    x[30] = np.nan  # the third of four batches of the second step
    ours = trainer(on_nonfinite="rollback", accumulate=4, optimizer="sgd", learning_rate=0.1)
    with pytest.warns(NonFiniteWarning, match="rolled back to step 0"):
        ours.fit(DataLoader(ArrayDataset(x, Y), 5), epochs=1)
    last = trainer(optimizer="sgd", learning_rate=0.1)
    last.fit((X[35:], Y[35:]), steps=1, batch_size=5)
    np.testing.assert_allclose(weights(ours)[0], weights(last)[0], rtol=1e-5)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rollback_does_not_go_back_behind_a_resume(tmp_path: Path) -> None:
    ours = trainer(on_nonfinite="rollback")
    ours.fit((X, Y), epochs=1)
    ours.save(tmp_path / "c")
    saved = weights(ours)
    ours.fit((X, Y), epochs=1)
    ours.resume(tmp_path / "c")
    with pytest.warns(NonFiniteWarning, match="in a batch"):
        ours.train_step((ops.asarray(X * np.nan), ops.asarray(Y)))
    assert weights(ours) == saved


@pytest.mark.usefixtures("on_numpy")
def test_a_trainer_in_fit_refuses_fit_and_resume(tmp_path: Path) -> None:
    saved = trainer()
    saved.fit((X, Y))
    saved.save(tmp_path / "c")
    for misuse in (lambda t: t.fit((X, Y)), lambda t: t.resume(tmp_path / "c")):
        ours = trainer(Run(misuse))
        with pytest.raises(ConcurrentUseError, match="the trainer is in fit"):
            ours.fit((X, Y), epochs=2)
        ours.callbacks = []
        ours.fit((X, Y), until_step=4)
        assert ours.step == 4


@pytest.mark.usefixtures("on_numpy")
def test_another_trainer_may_fit_in_a_callback() -> None:
    ours, alone = trainer(Run(lambda _: trainer().fit((X, Y)))), trainer()
    for each in (ours, alone):
        each.fit((X, Y), epochs=2)
    assert weights(ours) == weights(alone)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize(
    "options",
    [
        {"data": "generator", "epochs": 2},
        {"data": "generator", "until_epoch": 2},
        {"validation": "generator", "epochs": 2},
        {"validation": "generator", "steps": 9},
        {"validation": "generator", "validate_every": 1},
    ],
    ids=str,
)
def test_a_generator_that_is_too_short_is_refused_before_the_first_step(options: dict) -> None:
    given = {name: batches() if x == "generator" else x for name, x in options.items()}
    ours = trainer()
    with pytest.raises(ArgumentError, match="it can be read once"):
        ours.fit(given.pop("data", (X, Y)), **given)
    assert ours.step == 0


@pytest.mark.usefixtures("on_numpy")
def test_generators_that_are_read_once_are_enough() -> None:
    ours = trainer()
    ours.fit(batches(), validation=batches(), epochs=1)
    ours.fit(batches(), epochs=5, steps=8)
    assert ours.step == 16


class Add(Callback):
    """Adds values of several types to the records."""

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        record |= {"number": np.float32(3), "tensor": ops.asarray(2.0), "array": np.ones(2)}

    on_epoch_end = on_step_end


@pytest.mark.usefixtures("on_numpy")
def test_values_of_other_types_in_records_do_not_end_the_training(tmp_path: Path) -> None:
    trainer(Add(), Checkpoint(tmp_path, every_steps=1)).fit((X, Y), epochs=2)
    again = trainer().resume(tmp_path / "last")
    for record in again.history.steps:
        assert (record["number"], record["tensor"]) == (3.0, 2.0)


def raise_after(number: int) -> Callable[[Trainer], object]:
    def function(_: Trainer) -> object:
        os.kill(os.getpid(), number)
        raise ValueError("a bug in a callback")

    return function


SIGNALS = [(signal.SIGINT, TrainingInterrupted), (signal.SIGTERM, TrainingTerminated)]


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize(("number", "error"), SIGNALS)
def test_an_error_does_not_hide_a_signal(number: int, error: type[BaseException]) -> None:
    with pytest.raises(error) as raised:
        trainer(Run(raise_after(number))).fit((X, Y), epochs=2)
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize(("number", "error"), SIGNALS)
def test_a_file_of_the_user_does_not_hide_a_signal(
    number: int, error: type[BaseException], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_the_way(_: Trainer) -> None:
        (tmp_path / "last").mkdir()
        (tmp_path / "last" / "config.json").write_text("mine")
        os.kill(os.getpid(), number)

    with pytest.raises(error):
        trainer(Run(in_the_way), Checkpoint(tmp_path)).fit((X, Y), epochs=2)
    assert "could not be saved" in capsys.readouterr().out
    assert (tmp_path / "last" / "config.json").read_text() == "mine"


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("content", ["", "junk"])
def test_a_truncated_log_does_not_prevent_later_saves(content: str, tmp_path: Path) -> None:
    ours = trainer(Checkpoint(tmp_path, every_steps=1))
    ours.fit((X, Y), steps=4, batch_size=5)
    (tmp_path / "last" / "history.jsonl").write_text(content)
    with pytest.warns(UserWarning, match="was truncated"):
        ours.fit((X, Y), steps=2, batch_size=5)
    again = trainer().resume(tmp_path / "last")
    assert again.step == 6
    assert again.history.losses == ours.history.losses
