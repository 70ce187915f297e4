"""Lengths of schedules: from `fit`, or checked before the first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from ember_ml.data import DataLoader, IterableDataset
from ember_ml.registry import available
from ember_ml.training import schedules
from ember_ml.training.callbacks import Checkpoint
from tests.unit.training.classifiers import X, Y, trainer

pytestmark = pytest.mark.usefixtures("on_numpy")

WITH_LENGTH = [
    entry.name.partition("/")[2]
    for entry in available("schedules")
    if "total_steps" in entry.config.model_fields
]


def factors(ours) -> list[float]:
    return [record["learning_rate"] / 0.02 for record in ours.history.steps]


@pytest.mark.parametrize("name", WITH_LENGTH)
def test_the_length_is_that_of_fit(name: str) -> None:
    ours = trainer(schedule=name)
    ours.fit((X, Y), epochs=4, batch_size=16)
    given = schedules.get({"type": name, "total_steps": 12})
    assert factors(ours) == pytest.approx([given(step) for step in range(12)])
    ours.fit((X, Y), steps=5, batch_size=16)  # another call is another schedule
    given = schedules.get({"type": name, "total_steps": 5})
    assert factors(ours)[12:] == pytest.approx([given(step) for step in range(5)])


@pytest.mark.parametrize("name", WITH_LENGTH)
def test_a_resumed_fit_has_the_same_length(name: str, tmp_path: Path) -> None:
    options = {"schedule": name, "accumulate": 2}
    whole = trainer(**options)
    whole.fit((X, Y), epochs=4, batch_size=10)
    first = trainer(callbacks=[Checkpoint(tmp_path, every_steps=5)], **options)
    first.fit((X, Y), epochs=4, batch_size=10)
    again = trainer(**options).resume(tmp_path / "last")
    assert again.step == 10
    again.fit((X, Y), epochs=4, batch_size=10)
    assert factors(again) == factors(whole)


@pytest.mark.parametrize("name", WITH_LENGTH)
def test_a_length_that_is_too_short_is_an_error_before_the_first_step(name: str) -> None:
    ours = trainer(schedule={"type": name, "total_steps": 11})
    with pytest.raises(ValueError, match="total_steps=11, but fit ends at step 12"):
        ours.fit((X, Y), epochs=4, batch_size=16)
    assert ours.step == 0


def test_a_final_factor_may_go_on() -> None:
    ours = trainer(schedule=schedules.Linear(2, final_factor=0.5))
    ours.fit((X, Y), steps=4)
    assert factors(ours) == pytest.approx([1.0, 0.75, 0.5, 0.5])


def test_a_stream_needs_steps_or_a_length() -> None:
    def stream() -> DataLoader:
        return DataLoader(IterableDataset(lambda: zip(X, Y, strict=True)), 16)

    with pytest.raises(ValueError, match=r"Cosine: total_steps is not given.*pass total_steps"):
        trainer(schedule="cosine").fit(stream(), epochs=2)
    ours = trainer(schedule="cosine")
    ours.fit(stream(), steps=4)
    assert factors(ours) == pytest.approx([schedules.Cosine(4)(step) for step in range(4)])


def test_a_warmup_longer_than_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"warmup_steps \(9\) must be less than the 4 steps"):
        trainer(schedule={"type": "cosine", "warmup_steps": 9}).fit((X, Y), steps=4)


def test_parts_of_a_chain_have_the_length_of_their_steps() -> None:
    chain = schedules.Chained([(schedules.Warmup(2), 2), (schedules.Linear(), 4)])
    assert [chain(step) for step in range(6)] == [0.0, 0.5, 1.0, 0.75, 0.5, 0.25]
    with pytest.raises(ValueError, match="fit ends at step 6"):
        trainer(
            schedule=schedules.Chained([(schedules.Constant(), 2), (schedules.Linear(4), 4)])
        ).fit((X, Y), steps=8)


def test_a_schedule_without_a_length_says_so_outside_of_fit() -> None:
    with pytest.raises(ValueError, match="Linear: total_steps is unknown"):
        schedules.Linear()(0)
