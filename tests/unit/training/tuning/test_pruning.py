"""Pruning: equal to Optuna's successive halving, and a clean end of `fit`."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest

from ember_ml import nn, ops
from ember_ml.training import Trainer
from ember_ml.training.tuning import ASHA, Float, PruneTrial, SelfTuningModule, Trial, TuningError


def curves(seed, count=24, steps=30):
    """Return learning curves with noise that cross each other, some of which diverge."""
    rng = np.random.default_rng(seed)
    final, rate = rng.random(count), rng.uniform(0.05, 0.6, count)
    steps = np.arange(1, steps + 1)
    values = final[:, None] * (1 - np.exp(-rate[:, None] * steps)) + rng.normal(
        0, 0.02, (count, len(steps))
    )
    values = np.round(values, 2)  # with ties
    values[3, 7:] = math.nan
    return values


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize(
    "options",
    [
        {"min_steps": 1, "reduction_factor": 2},
        {"min_steps": 1, "reduction_factor": 4},
        {"min_steps": 2, "reduction_factor": 3, "min_rate": 1},
        {"min_steps": 3, "reduction_factor": 2, "bootstrap_count": 3},
    ],
    ids=str,
)
def test_asha_decides_as_optuna(mode, options):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    values = curves(seed=len(str(options)))
    theirs = optuna.create_study(
        direction=f"{mode}imize",
        pruner=optuna.pruners.SuccessiveHalvingPruner(
            min_resource=options["min_steps"],
            reduction_factor=options["reduction_factor"],
            min_early_stopping_rate=options.get("min_rate", 0),
            bootstrap_count=options.get("bootstrap_count", 0),
        ),
    )
    ours = ASHA(**options)
    ours.mode = mode
    running = {number: (Trial(number, {}), theirs.ask()) for number in range(len(values))}
    rng, decisions, at = np.random.default_rng(0), [], dict.fromkeys(running, 0)
    while running:  # trials advance in a random order, as on several machines
        number = list(running)[rng.integers(len(running))]
        own, other = running[number]
        value, at[number] = float(values[number, at[number]]), at[number] + 1
        other.report(value, at[number])
        decisions.append((ours.observe(own, at[number], value), other.should_prune()))
        if decisions[-1][1] or at[number] == values.shape[1]:
            theirs.tell(other, state=optuna.trial.TrialState.PRUNED)
            del running[number]
    assert [own for own, _ in decisions] == [other for _, other in decisions]
    assert 0 < sum(other for _, other in decisions) < len(decisions)


def test_decisions_are_the_same_after_a_restart(tmp_path):
    """A tuner that reads the reports from the file decides as the one that wrote them."""
    values = np.nan_to_num(curves(0, count=12))

    def tuner():
        pruner = ASHA(min_steps=1, reduction_factor=2)
        return SelfTuningModule({"x": Float(0, 1)}, path, sampler="random", pruner=pruner)

    path, restarted = tmp_path / "a.jsonl", []
    for each in range(2):
        path, decisions = tmp_path / f"{each}.jsonl", []
        own = tuner()
        trials = [own.ask() for _ in values]
        for step in range(1, 9):
            for trial, curve in zip(trials, values, strict=True):
                if not trial.stopped:
                    decisions.append(own.report(trial, step, float(curve[step])))
            if each:
                own = tuner()
        restarted.append(decisions)
    assert restarted[0] == restarted[1]
    assert True in restarted[0]


def test_a_trial_that_starts_again_is_not_its_own_competitor():
    pruner, first = ASHA(min_steps=1, reduction_factor=2), Trial(0, {})
    assert not pruner.observe(first, 1, 0.9)
    pruner.forget(first)
    assert not pruner.observe(first, 1, 0.1)


def test_a_reduction_factor_of_1_is_refused():
    with pytest.raises(TuningError, match="reduction_factor must be at least 2, not 1"):
        ASHA(reduction_factor=1)


@pytest.mark.parametrize("unit", ["step", "epoch"])
def test_prune_trial_ends_fit(backend, unit):
    reports = []

    def listener(step, value):
        reports.append((step, value))
        return len(reports) == 3

    trial = Trial(0, {}, listener=listener)
    callback = PruneTrial(trial, "val_loss", unit)
    x = ops.random.normal((32, 4), seed=0)
    trainer = Trainer(nn.layers.Dense(4, 1), "mse", callbacks=[callback], seed=0, progress=False)
    data = (x, x[:, :1])
    every = 2 if unit == "step" else None
    history = trainer.fit(data, validation=data, epochs=9, batch_size=8, validate_every=every)
    assert [step for step, _ in reports] == ([2, 4, 6] if unit == "step" else [1, 2, 3])
    assert callback.pruned
    assert trial.stopped
    assert trainer.step == (6 if unit == "step" else 12)
    records = history.steps if unit == "step" else history.epochs
    assert [value for _, value in reports] == [r["val_loss"] for r in records if "val_loss" in r]
