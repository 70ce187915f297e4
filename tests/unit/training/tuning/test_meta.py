"""Meta-features, the meta-model, importance and Pareto fronts."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from ember_ml import nn, ops
from ember_ml.training.tuning import (
    Choice,
    Float,
    SearchSpace,
    SelfTuningModule,
    Trial,
    TuningError,
    meta_features,
    pareto_front,
)
from ember_ml.training.tuning.meta_model import MetaModel
from ember_ml.training.tuning.scores import by_task


def test_meta_features_equal_numpy_and_scipy(backend):
    rng = np.random.default_rng(0)
    inputs = (rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5))).astype(np.float32)
    labels = rng.choice(3, 60, p=[0.6, 0.3, 0.1])
    model = nn.layers.Dense(5, 3)
    values = meta_features((ops.asarray(inputs), ops.asarray(labels)), model)
    scaled = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    spectrum = np.linalg.svd(scaled, compute_uv=False) ** 2
    expected = {
        "log_examples": np.log10(60),
        "log_features": np.log10(5),
        "log_classes": np.log10(3),
        "class_entropy": stats.entropy(np.bincount(labels)) / np.log(3),
        "effective_rank": np.exp(stats.entropy(spectrum)) / 5,
        "log_parameters": np.log10(1 + 18),
    }
    assert values == pytest.approx(expected, abs=2e-6)


def test_meta_features_of_tokens_and_real_targets(on_numpy):
    tokens = ops.asarray([[1, 2, 3], [4, 5, 6]])
    values = meta_features((tokens, tokens))
    assert (values["effective_rank"], values["log_classes"]) == (0.0, pytest.approx(np.log10(6)))
    values = meta_features((ops.ones((4, 2)), ops.ones((4, 1))))
    assert (values["log_classes"], values["class_entropy"], values["effective_rank"]) == (0, 0, 0)


SPACE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "kind": Choice(["a", "b"])})


def tuner(function, count=60, path=None):
    own = SelfTuningModule(SPACE, path, sampler="random")
    for _ in range(count):
        trial = own.ask()
        own.tell(trial, function(trial))
    return own


def test_importance_approaches_the_sobol_indices():
    """Of 3 x + y + 1[kind = b] the total effects are 9/12, 1/12 and 3/12, relative to 13/12."""
    shares = tuner(lambda t: 3 * t["x"] + t["y"] + (t["kind"] == "b"), 150).explain()
    expected = {"x": 9 / 13, "y": 1 / 13, "kind": 3 / 13}
    assert shares == pytest.approx(expected, abs=0.06)
    assert list(shares) == ["x", "kind", "y"]


def test_explain_needs_trials():
    with pytest.raises(TuningError, match="at least 8 completed trials"):
        tuner(lambda t: t["x"], 3).explain()


def test_the_meta_model_predicts_from_meta_features_and_keeps_the_random_state(backend):
    """The best x depends on the task, and only the meta-features say how."""
    rng = random.Random(0)
    history = []
    for task in range(12):
        best = rng.random()
        for at in range(20):
            params = SPACE.sample(rng)
            scores = {"score": -abs(params["x"] - best)}
            history.append(
                Trial(
                    100 * task + at,
                    params,
                    task=str(task),
                    meta={"best": best},
                    state="done",
                    scores=scores,
                )
            )
    ops.random.set_seed(5)
    state = str(ops.random.get_state())
    model = MetaModel(SPACE).fit(by_task(history, {"score": 1.0}))
    grid = [{"x": at / 20, "y": 0.5, "kind": "a"} for at in range(21)]
    for best in (0.2, 0.8):
        means, stds = model.predict(grid, {"best": best})
        assert abs(grid[int(np.argmax(means))]["x"] - best) < 0.2
        assert min(stds) > 0
    assert str(ops.random.get_state()) == state


def test_the_front_is_what_no_trial_dominates():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 6, (40, 2))
    trials = [
        Trial(at, {}, state="done", scores={"accuracy": float(a), "parameters": float(p)})
        for at, (a, p) in enumerate(points)
    ]
    front = pareto_front(trials, {"accuracy": "max", "parameters": "min"})
    dominated = [
        any((q[0] >= p[0] and q[1] <= p[1]) and (q[0] > p[0] or q[1] < p[1]) for q in points)
        for p in points
    ]
    assert {trial.id for trial in front} == {at for at, is_in in enumerate(dominated) if not is_in}
    accuracies = [trial.scores["accuracy"] for trial in front]
    assert accuracies == sorted(accuracies, reverse=True)


def test_several_objectives(tmp_path):
    own = SelfTuningModule(
        SPACE,
        tmp_path / "runs.jsonl",
        objectives={"val_accuracy": "max", "parameters": "min"},
        sampler="random",
    )
    own.fit(lambda t: {"val_accuracy": t["x"], "parameters": t["x"] ** 2}, budget=6)
    assert len(own.front) == 6
    assert own.best is own.front[0]
    with pytest.raises(TuningError, match="must be a dict with the objectives val_accuracy, par"):
        own.tell(own.ask(), 0.5)
    with pytest.raises(TuningError, match="has no value of parameters"):
        own.tell(own.ask(), {"val_accuracy": 0.5})
    with pytest.raises(TuningError, match="metric 'val_loss' must be one of the objectives"):
        SelfTuningModule(SPACE, None, "val_loss", objectives={"a": "max", "b": "min"})
