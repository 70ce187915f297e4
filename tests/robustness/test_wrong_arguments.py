"""Wrong arguments of a trainer and its callbacks: refused before the first step, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import EmberError
from ember_ml.backend import use_backend
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback, Checkpoint, CSVLogger, EarlyStopping

X = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)
NO_INTEGERS = ["2", [2], math.nan, math.inf, 1.5, True, ..., np.array([1, 2]), {}]


@pytest.fixture(autouse=True)
def on_numpy():
    with use_backend("numpy"):
        yield


def trainer(*callbacks: Callback, **options: Any) -> Trainer:
    ops.random.set_seed(1)
    given = {"loss": "mse", "seed": 1, "progress": False, "callbacks": callbacks, **options}
    return Trainer(nn.layers.Dense(3, 1), given.pop("loss"), **given)


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
@pytest.mark.parametrize(
    "name", ["epochs", "steps", "until_epoch", "until_step", "batch_size", "validate_every"]
)
def test_fit_takes_integers_only(name: str, value: object) -> None:
    ours = trainer()
    with pytest.raises((TypeError, ValueError), match=f"{name} must be an integer") as raised:
        ours.fit((X, Y), validation=(X, Y), **{"steps": 2, name: value})
    assert isinstance(raised.value, EmberError)
    assert ours.step == 0


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
@pytest.mark.parametrize(
    ("create", "name"),
    [
        (lambda x: Checkpoint("unused", every_steps=x), "Checkpoint: every_steps"),
        (lambda x: Checkpoint("unused", keep=x), "Checkpoint: keep"),
        (lambda x: EarlyStopping(patience=x), "EarlyStopping: patience"),
        (lambda x: CSVLogger("unused", every_steps=x), "CSVLogger: every_steps"),
    ],
    ids=["every_steps", "keep", "patience", "rows"],
)
def test_callbacks_take_integers_only(
    create: Callable[[object], Callback], name: str, value: object
) -> None:
    with pytest.raises(TypeError, match=f"{name} must be an integer, not"):
        create(value)


@pytest.mark.parametrize("value", [None, 3, ["loss"], math.nan, b"loss"], ids=repr)
def test_the_monitored_value_is_a_name(value: Any) -> None:
    with pytest.raises(TypeError, match="monitor must be the name of a value"):
        EarlyStopping(value)


@pytest.mark.parametrize("value", ["1", None, math.nan, math.inf, [0.1], np.ones(2)], ids=repr)
def test_the_minimum_improvement_is_a_finite_number(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="min_delta must be a finite number"):
        EarlyStopping("loss", min_delta=value)


@pytest.mark.parametrize("name", ["accumulate", "seed"])
@pytest.mark.parametrize("value", [np.array([1, 2]), np.zeros(0, int)], ids=repr)
def test_a_config_rejects_an_array_as_an_integer(name: str, value: object) -> None:
    with pytest.raises(EmberError, match=f"{name}: should be a valid integer"):
        trainer(**{name: value})


@pytest.mark.parametrize("name", ["loss", "schedule"])
@pytest.mark.parametrize("value", [object(), np.ones(2)], ids=["object", "array"])
def test_a_loss_or_schedule_must_be_callable(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"Trainer: the {name} must be a name"):
        trainer(**{name: value})


@pytest.mark.parametrize(
    "value", ["csv", [1], 3, None, Checkpoint, [Checkpoint], {"a": 1}], ids=repr
)
def test_callbacks_are_objects_of_callback_classes(value: Any) -> None:
    with pytest.raises(TypeError, match="Trainer: callbacks must be a list of Callback objects"):
        trainer(callbacks=value)


@pytest.mark.parametrize(
    "validation",
    [
        "abc",
        3,
        object(),
        [],
        (),
        {},
        X,
        (X, Y[:39]),
        (X[:0], Y[:0]),
        (np.float32(1), np.float32(1)),
        ([[1.0, 2.0], [1.0]], [1.0, 2.0]),
        DataLoader(ArrayDataset(X[:3], Y[:3]), 4, drop_last=True),
    ],
    ids=lambda value: f"{type(value).__name__} {value!r:.20}",
)
def test_wrong_validation_data_does_not_cost_an_epoch(validation: Any) -> None:
    ours = trainer()
    with pytest.raises(EmberError, match="fit: validation"):
        ours.fit((X, Y), validation=validation, epochs=1)
    assert ours.step == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, None, "x"], ids=repr)
@pytest.mark.parametrize("on_nonfinite", ["raise", "skip"])
def test_a_schedule_cannot_destroy_the_model(value: Any, on_nonfinite: str) -> None:
    ours = trainer(schedule=lambda step: 1.0 if step < 2 else value, on_nonfinite=on_nonfinite)
    with pytest.raises((TypeError, ValueError), match=r"schedule returned .* for step 2"):
        ours.fit((X, Y), steps=5, batch_size=5)
    two = trainer()
    two.fit((X, Y), steps=2, batch_size=5)
    for ours_value, theirs in zip(ours.model.parameters(), two.model.parameters(), strict=True):
        np.testing.assert_array_equal(ours_value.numpy(), theirs.numpy())


class Grow(Callback):
    """Adds a layer to the model, which the optimizer does not know."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        trainer.model.extra = nn.layers.Dense(3, 1)


def test_parameters_that_a_callback_adds_are_not_left_untrained() -> None:
    ours = trainer(Grow())
    with pytest.raises(EmberError, match="does not have the parameters extra"):
        ours.fit((X, Y), epochs=3)
    assert ours.epoch == 1


def test_a_callback_that_is_right_is_accepted(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, every_steps=np.int64(1), keep=np.int32(2))
    stop = EarlyStopping("loss", patience=np.int64(3), min_delta=np.float32(0.1))
    trainer(checkpoint, stop).fit((X, Y), steps=np.int64(2), batch_size=np.int32(5))
    assert sorted(path.name for path in tmp_path.iterdir())[0] == "last"


class Stateful(Callback):
    """Has a state, whatever it is."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state


@pytest.mark.parametrize("state", [None, [1], {"a": ...}, {"a": np.ones(2)}, {(1, 2): 3}], ids=repr)
def test_a_state_that_cannot_be_read_back_is_not_saved(state: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"Stateful\.state_dict must return a dict of numbers"):
        trainer(Stateful(state)).save(tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()
    ours = trainer(Stateful(state), Checkpoint(tmp_path / "run", every_steps=1))
    with pytest.raises(TypeError, match=r"Stateful\.state_dict must return a dict of numbers"):
        ours.fit((X, Y), steps=2)
    assert ours.step == 0
