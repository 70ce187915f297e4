"""How long `fit` trains: from this call, in total, and after a resume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.training.callbacks import Callback, Checkpoint
from tests.unit.training.classifiers import X, Y, trainer

pytestmark = pytest.mark.usefixtures("on_numpy")

OTHER = np.random.default_rng(9).standard_normal((48, 5)).astype("float32")


@pytest.mark.parametrize("first", [{"epochs": 2}, {"steps": 4}])
def test_a_second_fit_counts_from_its_start(first: dict) -> None:
    ours = trainer()
    ours.fit((X, Y), batch_size=16, **first)
    before, epochs = ours.step, ours.epoch
    ours.fit((OTHER, Y), epochs=3, batch_size=16)
    assert ours.step - before == 9  # three whole epochs, although the first call ended within one
    assert ours.epoch - epochs == 3
    assert ours.total_steps == ours.step
    ours.fit((OTHER, Y), steps=2, batch_size=16)
    assert ours.step - before == 11


def test_other_data_of_the_same_size_starts_an_epoch() -> None:
    seen: list[float] = []

    class Watch(Callback):
        def on_fit_start(self, trainer) -> None:
            seen.append(float(trainer.loader.state_dict()["batches"]))

    ours = trainer(callbacks=[Watch()])
    ours.fit((X, Y), steps=1, batch_size=16)
    ours.fit((X, Y), steps=1, batch_size=16)
    ours.fit((OTHER, Y), steps=1, batch_size=16)
    ours.fit(DataLoader(ArrayDataset(OTHER, Y), 16, shuffle=True), steps=1)
    assert seen == [0.0, 1.0, 0.0, 0.0]


def test_until_gives_totals() -> None:
    ours = trainer()
    ours.fit((X, Y), until_epoch=2, batch_size=16)
    ours.fit((X, Y), until_epoch=3, batch_size=16)
    assert (ours.epoch, ours.step) == (3, 9)
    ours.fit((X, Y), until_epoch=3, batch_size=16)
    ours.fit((X, Y), until_step=10, epochs=5, batch_size=16)
    assert (ours.epoch, ours.step) == (3, 10)
    assert ours.fit((X, Y), epochs=0).losses == ours.history.losses


def script(folder: Path, *, resume: bool, stop: int | None = None):
    """Run a script that trains twice, or is interrupted at a step."""

    class Kill(Callback):
        def on_step_end(self, trainer, record) -> None:
            if trainer.step == stop:
                raise RuntimeError("killed")

    ours = trainer(callbacks=[Checkpoint(folder, every_steps=1), Kill()], seed=0)
    if resume and (folder / "last").exists():
        ours.resume(folder / "last")
    ours.fit((X, Y), until_epoch=2, batch_size=16)
    ours.fit((OTHER, Y), epochs=2, batch_size=16)
    return ours


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 7, 8, 9, 11])
def test_the_same_script_started_again_ends_the_same(stop: int, tmp_path: Path) -> None:
    whole = script(tmp_path / "whole", resume=False)
    with pytest.raises(RuntimeError, match="killed"):
        script(tmp_path / "part", resume=False, stop=stop)
    again = script(tmp_path / "part", resume=True)
    assert again.history.losses == whole.history.losses
    assert (again.epoch, again.step) == (whole.epoch, whole.step) == (4, 12)


def test_a_finished_training_that_is_resumed_says_that_nothing_is_left(tmp_path: Path) -> None:
    ours = trainer()
    ours.fit((X, Y), epochs=2)
    ours.save(tmp_path / "a")
    again = trainer().resume(tmp_path / "a")
    with pytest.warns(UserWarning, match="nothing left to do in this call"):
        again.fit((X, Y), epochs=2)
    assert again.epoch == 2
    again.fit((X, Y), epochs=1)  # counts from here again
    assert again.epoch == 3


@pytest.mark.parametrize("name", ["epochs", "steps", "until_epoch", "until_step"])
def test_limits_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 0, not 1.5"):
        trainer().fit((X, Y), **{name: 1.5})
