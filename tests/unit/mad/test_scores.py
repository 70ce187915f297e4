"""Which runs count, and on which examples."""

from __future__ import annotations

import pytest

from ember_ml import mad
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Result
from ember_ml.mad.store import Done
from tests.unit.mad.sweeps import result


def done(rate: float, validation: float, test: float, loss: float = 1.0) -> Done:
    run = RunConfig(
        architecture="gru", layers="gru", task={"type": "memorization"}, learning_rate=rate
    )
    found: Result = result(test, loss=loss)._replace(validation_accuracy=validation)
    return Done(run, found)


def test_the_best_on_the_validation_split_counts() -> None:
    better_there, better_here = done(1e-3, 0.9, test=0.5), done(1e-4, 0.8, test=0.7)
    for order in ([better_there, better_here], [better_here, better_there]):
        (cell,) = mad.cells(order)
        assert cell.chosen == (better_there,)
        assert cell.accuracy.mean == 0.5


def test_equal_ones_are_told_apart_by_their_loss() -> None:
    (cell,) = mad.cells([done(1e-3, 0.9, 0.6, loss=2.0), done(1e-4, 0.9, 0.4, loss=1.0)])
    assert cell.accuracy.mean == 0.4


def test_the_result_is_of_the_test_split() -> None:
    """Asked for less than what is trained on: values that were not shown cannot be known."""
    sizes = {"vocab_size": 8, "seq_len": 8, "num_train": 32, "num_validation": 24, "num_test": 40}
    run = RunConfig(
        architecture="gru",
        layers="gru",
        task={"type": "in-context-recall", **sizes},
        hidden_size=8,
        steps=2,
    )
    found = mad.execute(run)
    task = mad.task("in-context-recall", **sizes)
    asked = {name: int((task.arrays(name)[1] >= 0).sum()) for name in ("validation", "test")}
    assert asked["validation"] % asked["test"]
    assert asked["test"] % asked["validation"]
    assert found.accuracy * asked["test"] == pytest.approx(round(found.accuracy * asked["test"]))
    assert found.validation_accuracy * asked["validation"] == pytest.approx(
        round(found.validation_accuracy * asked["validation"])
    )
