"""Random trainings, killed at a random step: the resumed run equals the undisturbed one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.backend import BACKENDS, available, use_backend
from ember_ml.registry import available as components
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger, EarlyStopping, LRMonitor
from tests.backends import has_dtype
from tests.robustness.scale import amount

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3)).astype("float32")
Y = (X.sum(axis=1) > 0).astype("int64")
STEPS = 18
LENGTHS = {"total_steps": STEPS, "warmup_steps": 4, "step_size": 3, "milestones": (4, 9)}


def names(kind: str) -> list[str]:
    return [entry.name.partition("/")[2] for entry in components(kind)]


def schedule(name: str, rng: random.Random) -> dict[str, Any]:
    """Return a schedule with the lengths that its config has."""
    if name == "chained":
        first, second = (schedule(each, rng) for each in ("warmup", rng.choice(["step", "cosine"])))
        return {"type": name, "parts": [(first, 5), (second, STEPS)]}
    entry = next(each for each in components("schedules") if each.name == f"schedules/{name}")
    fields = entry.config.model_fields
    lengths = {field: value for field, value in LENGTHS.items() if field in fields}
    if "step_size" in lengths:
        del lengths[rng.choice(["step_size", "milestones"])]
    return {"type": name, **lengths, **({"patience": 0} if "patience" in fields else {})}


def draw(backend: str, rng: random.Random) -> dict[str, Any]:
    """Return random options of a trainer."""
    scheduled = rng.choice([None, *names("schedules")])
    precisions = [p for p in ("bfloat16", "float16") if has_dtype(backend, p)]
    return {
        "optimizer": rng.choice(names("optimizers")),
        "learning_rate": 0.01,
        "schedule": None if scheduled is None else schedule(scheduled, rng),
        "precision": rng.choice(["float32", "float32", *precisions]),
        "accumulate": rng.choice([1, 1, 2, 3]),
        "clip_norm": rng.choice([None, 0.5]),
        "clip_value": rng.choice([None, 0.1]),
        "ema": rng.choice([None, 0.9]),
    }


class Kill(Callback):
    """Ends the training without any cleanup of its own."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        if trainer.step == self.step:
            raise Killed


class Killed(BaseException):
    pass


def callbacks(folder: Path, every: int | None, seed: str) -> list[Callback]:
    rng = random.Random(seed)
    parts: list[Callback] = [
        Checkpoint(folder, every_steps=every, keep=rng.choice([0, 2]), monitor="loss")
    ]
    for part in (
        LRMonitor(),
        CSVLogger(folder / "log.csv"),
        EarlyStopping("loss", patience=rng.choice([0, 1, 9])),
    ):
        if rng.random() < 0.5:
            parts.insert(rng.randrange(len(parts) + 1), part)
    return parts


def run(options: dict[str, Any], parts: list[Callback], start: Path | None = None) -> Trainer:
    ops.random.set_seed(3)
    model = nn.Sequential(
        nn.layers.Dense(3, 4), nn.layers.BatchNorm(4), nn.layers.Dropout(0.2), nn.layers.Dense(4, 2)
    )
    options = {name: value for name, value in options.items() if value is not None}
    trainer = Trainer(model, "cross_entropy", seed=5, progress=False, callbacks=parts, **options)
    if start is not None:
        ops.random.set_seed(99)  # what happens in between does not matter
        trainer.resume(start)
    trainer.fit((X, Y), (X, Y), until_step=STEPS, batch_size=7)
    return trainer


DRAWS = [(backend, at) for backend in BACKENDS for at in range(amount(2, 300))]


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # float16 overflows
@pytest.mark.parametrize(("name", "at"), DRAWS)
def test_a_killed_training_resumes_bit_for_bit(name: str, at: int, tmp_path: Path) -> None:
    if name not in available():
        pytest.skip(f"the {name} backend is not installed")
    seed = f"{name} {at}"
    rng = random.Random(seed)
    with use_backend(name):
        options, every, step = draw(name, rng), rng.choice([1, 2, 5, None]), rng.randrange(5, STEPS)
        whole = run(options, callbacks(tmp_path / "whole", every, seed))
        folder = tmp_path / "killed"
        parts = callbacks(folder, every, seed)
        try:
            first = run(options, [*parts, Kill(step)])
        except Killed:
            place = rng.choice(["last", "best"])
            start = next(
                p for p in (folder / place, folder / "last", None) if p is None or p.exists()
            )
            again = run(options, callbacks(folder, every, seed), start)
        else:  # early stopping ended it before
            again = first
        assert_equal(again, whole)


def assert_equal(mine: Trainer, theirs: Trainer) -> None:
    assert (mine.step, mine.epoch) == (theirs.step, theirs.epoch)
    assert mine.history.steps == theirs.history.steps
    for ours, other in zip(mine.history.epochs, theirs.history.epochs, strict=True):
        assert {**ours, "seconds": 0.0} == {**other, "seconds": 0.0}
    states = mine.model.state_dict(), theirs.model.state_dict()
    for name, value in states[0].items():
        assert np.array_equal(value.numpy(), states[1][name].numpy()), name
