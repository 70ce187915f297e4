"""`SelfTuningModule.fit`: outcomes of trials, continuation, and training data."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.training.tuning import (
    ASHA,
    Choice,
    Float,
    SelfTuningModule,
    Trial,
    TrialPruned,
    TuningError,
    run_trial,
)

SPACE = {"x": Float(0.0, 1.0)}


def tuner(path, **options):
    return SelfTuningModule(SPACE, path, sampler="random", **options)


def exhausted(text):
    def fail():
        raise RuntimeError(text)

    return fail


def out_of_memory():
    np.empty(2**45)  # 256 TiB


OUTCOMES = [
    (lambda: 0.5, "done", ""),
    (lambda: 1 / 0, "failed", "ZeroDivisionError: division by zero"),
    (lambda: float("nan"), "failed", "diverged: the score is not finite"),
    (lambda: ops.asarray(0.25), "done", ""),
    (lambda: {"val_loss": 1.0}, "failed", "no objective 'val_loss'"),
    (lambda: "high", "failed", "could not convert"),
    (out_of_memory, "failed", "out of memory: Unable to allocate"),
    (exhausted("CUDA out of memory. Tried to allocate"), "failed", "out of memory: CUDA"),
    (exhausted("[malloc] Unable to allocate 64 bytes"), "failed", "out of memory: [malloc]"),
    (exhausted("DefaultCPUAllocator: can't allocate memory"), "failed", "out of memory: Default"),
]


def test_a_trial_that_fails_is_recorded_and_the_search_goes_on(tmp_path):
    left = [call for call, _, _ in OUTCOMES]
    own = tuner(tmp_path / "runs.jsonl")
    best = own.fit(lambda trial: left.pop(0)(), budget=len(OUTCOMES))
    assert best.scores == {"val_accuracy": 0.5}
    for trial, (_, state, reason) in zip(own.trials, OUTCOMES, strict=True):
        assert trial.state == state
        assert reason in trial.reason


def test_a_search_without_a_result_says_why():
    own = SelfTuningModule(SPACE, None, sampler="random")
    with pytest.warns(UserWarning, match="all 2 trials failed, the last one with: ZeroDivision"):
        assert own.fit(lambda trial: 1 / 0, budget=2) is None


def test_reports_prune_and_a_nan_report_fails(tmp_path):
    curves = [[0.5, 0.6], [0.1, 0.2], [float("nan")], [0.7, 0.8]]

    def objective(trial):
        for step, value in enumerate(curves[trial.id], 1):
            if trial.report(step, value):
                if trial.id == 1:
                    raise TrialPruned
                return value
        return value

    own = tuner(tmp_path / "runs.jsonl", pruner=ASHA(min_steps=1, reduction_factor=2))
    own.fit(objective, budget=4)
    assert [trial.state for trial in own.trials] == ["done", "pruned", "failed", "done"]
    assert own.trials[1].scores == {"val_accuracy": 0.1}
    assert "diverged" in own.trials[2].reason
    assert own.best.id == 3


def test_the_same_call_continues_and_repeats_nothing(tmp_path):
    path, ran = tmp_path / "runs.jsonl", []

    def objective(trial):
        ran.append(trial.id)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return trial["x"]

    with pytest.raises(KeyboardInterrupt):
        tuner(path).fit(objective, budget=5)
    assert tuner(path).fit(objective, budget=5).id in range(5)
    assert ran == [0, 1, 2, 2, 3, 4]
    before = path.read_bytes()
    tuner(path).fit(objective, budget=5)
    assert path.read_bytes() == before


def test_run_trial_takes_and_returns_plain_data():
    trial = Trial(3, {"x": 0.5}, task="t", seed=7)
    outcome = run_trial(lambda own: {"a": own["x"], "seed": own.seed}, trial.to_dict())
    assert outcome == {"kind": "told", "values": {"a": 0.5, "seed": 7.0}}
    assert run_trial(lambda own: own.report(1, 0.0), trial.to_dict(), lambda *_: True) == {
        "kind": "pruned"
    }


BASE = {
    "model": {"type": "layers/mlp", "in_features": 3, "hidden_features": [4], "out_features": 2},
    "trainer": {"loss": "cross_entropy", "metrics": ["accuracy"]},
    "epochs": 2,
    "batch_size": 16,
}


def test_training_data_trains_the_base_config(backend, tmp_path):
    x = ops.random.normal((48, 3), seed=0)
    y = ops.cast(x[:, 0] > 0, "int64")
    space = {
        "trainer.learning_rate": Choice([1e-4, 0.1]),
        "model.hidden_features": Choice([[4], [8, 8]]),
    }
    own = SelfTuningModule(
        space,
        tmp_path / "runs.jsonl",
        sampler="random",
        base=BASE,
        objectives={"val_accuracy": "max", "parameters": "min", "latency": "min"},
    )
    best = own.fit((x, y), (x, y), budget=4)
    assert [trial.reason for trial in own.trials] == [""] * 4
    counts = {(4,): 26, (8, 8): 122}
    for trial in own.trials:
        assert trial.scores["parameters"] == counts[tuple(trial["model.hidden_features"])]
        assert trial.scores["latency"] > 0
        assert [step for step, _ in trial.reports] == [3, 6]
        assert trial.reports[-1][1] == trial.scores["val_accuracy"]
    assert best.scores["val_accuracy"] == max(t.scores["val_accuracy"] for t in own.trials)
    assert own.task.startswith("task-")
    assert own.meta["log_examples"] == pytest.approx(np.log10(48), abs=1e-6)


def test_errors_of_fit(tmp_path):
    own = tuner(tmp_path / "runs.jsonl")
    with pytest.raises(TuningError, match="needs a function of a trial, or training and"):
        own.fit([1, 2])
    with pytest.raises(TuningError, match=r"needs a config: SelfTuningModule\(..., base="):
        own.fit([1, 2], [1, 2])
    with pytest.raises(ValueError, match="budget must be at least 1, not 0"):
        own.fit(lambda trial: 0.0, budget=0)
    for options, message in [
        ({"sampler": 3}, "samplers"),
        ({"sampler": "rndom"}, "did you mean 'random'"),
        ({"mode": "best"}, "must be 'min' or 'max', not 'best'"),
        ({"metric": ""}, "metric must be a name"),
    ]:
        with pytest.raises((TuningError, TypeError, KeyError), match=message):
            SelfTuningModule(SPACE, None, **{"sampler": "random", **options})


@pytest.mark.parametrize("in_memory", [False, True])
def test_an_objective_that_changes_its_trial_does_not_change_the_history(in_memory, tmp_path):
    def objective(trial):
        before = dict(trial)
        trial.params["layers"].append(9)
        trial.params["x"] = 77.0
        seen.append({**before, "layers": before["layers"][:-1]})
        return 1.0

    seen = []
    space = {**SPACE, "layers": Choice([[8], [16]])}
    path = None if in_memory else tmp_path / "runs.jsonl"
    own = SelfTuningModule(space, path, sampler="random")
    own.fit(objective, budget=3)
    assert own.space["layers"].values == [[8], [16]]
    assert [trial.params for trial in own.trials] == seen


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda trial: trial.report(1, "high"), "a score must be a number, not 'high'"),
        (lambda trial: trial.report(1, 10**400), "a score must be a number"),
        (lambda trial: trial.report(1, float("nan")), "the first report is not finite"),
    ],
)
def test_a_report_that_is_not_a_number_is_an_error_of_the_objective(act, reason):
    own = tuner(None)
    with pytest.warns(UserWarning, match="all 1 trials failed"):
        own.fit(lambda trial: act(trial) or 1.0, budget=1)
    assert reason in own.trials[0].reason


def test_a_trial_pruned_before_its_first_report_says_so():
    def objective(trial):
        raise TrialPruned

    own = tuner(None)
    with pytest.warns(UserWarning, match="before the first report"):
        own.fit(objective, budget=1)


@pytest.mark.parametrize(
    "options", [{"task": 3}, {"task": "\ud800"}, {"source": ["a"]}, {"objectives": ["val_loss"]}]
)
def test_arguments_of_a_wrong_type_are_named(options):
    with pytest.raises(TuningError, match=f"SelfTuningModule: {next(iter(options))} must"):
        tuner(None, **options)
