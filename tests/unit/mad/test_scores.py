"""Selection of runs, and their scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from ember_ml import mad
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import make_model, make_trainer
from ember_ml.mad.scores import setting_of
from ember_ml.mad.store import Done
from ember_ml.nn import tensor
from ember_ml.registry import build
from tests.unit.mad.sweeps import result


def done(rate: float, validation: float, test: float, loss: float = 1.0, **found: float) -> Done:
    run = RunConfig(
        architecture="gru", layers="gru", task={"type": "memorization"}, learning_rate=rate
    )
    made = result(test, loss=loss)._replace(validation_accuracy=validation, **found)
    return Done(run, made)


def test_the_best_on_the_validation_split_counts() -> None:
    better_there, better_here = done(1e-3, 0.9, test=0.5), done(1e-4, 0.8, test=0.7)
    for order in ([better_there, better_here], [better_here, better_there]):
        (cell,) = mad.cells(order)
        assert cell.chosen == (better_there,)
        assert cell.accuracy.mean == 0.5


def test_the_validation_split_decides_between_equal_settings() -> None:
    one = done(1e-3, 0.9, 0.6, loss=1.0, validation_loss=2.0)
    other = done(1e-4, 0.9, 0.4, loss=2.0, validation_loss=1.0)
    assert mad.cells([one, other])[0].chosen == mad.cells([other, one])[0].chosen == (other,)


def test_seeds_have_examples_of_their_own() -> None:
    runs = mad.Sweep(["gru"], "unused", scale="tiny", tasks=["recall"], seeds=[0, 1]).runs
    first, second = (build("tasks", run.task).arrays("test")[0] for run in runs)
    assert not np.array_equal(first, second)
    assert setting_of(runs[0]) == setting_of(runs[1])


def test_accuracies_are_those_of_the_models_predictions() -> None:
    """Micro and macro; a class that is predicted but never a target counts 0."""
    sizes = {"vocab_size": 8, "seq_len": 8, "num_train": 32, "num_validation": 24, "num_test": 40}
    task = {"type": "in-context-recall", **sizes}
    run = RunConfig(architecture="gru", layers="gru", task=task, hidden_size=8, steps=2)
    found = mad.execute(run)
    made, model = build("tasks", run.task), make_model(run)
    make_trainer(run, model, 8).fit(made.train, steps=2, batch_size=32)
    inputs, targets = made.arrays("test")
    predicted = model.eval()(tensor.array(inputs)).numpy().argmax(-1)[targets >= 0]
    actual = targets[targets >= 0]
    assert found.accuracy == pytest.approx(sk.accuracy_score(actual, predicted))
    macro = sk.recall_score(actual, predicted, average="macro", zero_division=0)
    assert found.macro_accuracy == pytest.approx(macro)
    assert set(predicted) - set(actual), "the rule is put to the test"


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


@pytest.mark.parametrize("change", [{"hidden_size": 64}, {"steps": 7}, {"batch_size": 4}])
def test_different_settings_are_not_mixed(change: dict) -> None:
    one = done(1e-3, 0.9, 0.9)
    other = one._replace(run=one.run.model_copy(update=change))
    with pytest.raises(ValueError, match=f"different settings: {next(iter(change))} is"):
        mad.cells([one, other])
    assert mad.cells([one, done(1e-4, 0.9, 0.9)])
