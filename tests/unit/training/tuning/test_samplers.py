"""Samplers: valid and reproducible proposals, and what they learn from other tasks."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ember_ml import registry
from ember_ml.training.tuning import AutoSampler, Choice, Float, Integer, Search, SearchSpace, Trial
from ember_ml.training.tuning.samplers.auto import random_regret, regret
from ember_ml.training.tuning.samplers.warm import MeanScore
from ember_ml.training.tuning.scores import by_task

SPACE = SearchSpace(
    {
        "rate": Float(1e-3, 1.0, log=True),
        "kind": Choice(["a", "b"]),
        "width": Integer(1, 9, when={"kind": "a"}),
    }
)
NAMES = [entry.bare for entry in registry.available("samplers")]
MAX = {"score": "max"}


def score(params, shift=0.0):
    """Return a score whose maximum is at rate 0.1 and kind "a"."""
    return -((np.log10(params["rate"]) + 1.0 + shift) ** 2) + (params["kind"] == "a")


def trials(task, count=12, objectives=MAX, function=score, first=0):
    rng = random.Random(task)
    made = []
    for at in range(count):
        params = SPACE.sample(rng)
        scores = {name: float(function(params)) for name in objectives}
        made.append(Trial(first + at, params, task=task, source=task, state="done", scores=scores))
    return made


def others(objectives=MAX, function=score):
    return [
        trial
        for at, task in enumerate("pqrs")
        for trial in trials(task, objectives=objectives, function=function, first=100 * at)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("objectives", [MAX, {"score": "max", "cost": "min"}], ids=["one", "two"])
def test_proposals_are_valid_and_reproducible(name, objectives):
    own = trials("own", 4, objectives, first=1000)
    own[1].state, own[1].scores = "failed", {}
    own[2].state, own[2].scores = "running", {}
    own[3].state, own[3].scores, own[3].reports = "pruned", {"score": 0.1}, [(1, 0.1)]

    def propose(seed):
        search = Search(SPACE, objectives, own, others(objectives), seed=seed)
        return sampler.propose(search)

    sampler = registry.build("samplers", name)
    params = propose(3)
    assert SPACE.check(params) == params
    sampler = sampler if name == "auto" else registry.build("samplers", name)
    assert propose(3) == params


@pytest.mark.parametrize("name", NAMES)
def test_the_first_proposal_without_a_history_is_valid(name):
    params = registry.build("samplers", name).propose(Search(SPACE, MAX, seed=1))
    assert SPACE.check(params) == params


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_is_proposed_once(name):
    candidates = [trial.params for trial in trials("table", 6)]
    own, sampler = [], registry.build("samplers", name)
    for number in range(6):
        search = Search(SPACE, MAX, own, others(), seed=number, candidates=candidates)
        params = sampler.propose(search)
        own.append(Trial(number, params, state="done", scores={"score": score(params)}))
    assert sorted(map(str, (trial.params for trial in own))) == sorted(map(str, candidates))


@pytest.mark.parametrize("name", ["mean-score", "meta-model"])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_first_proposal_is_good_where_other_tasks_agree(name, mode):
    sign = 1 if mode == "max" else -1
    history = others(function=lambda params: sign * score(params))
    search = Search(SPACE, {"score": mode}, [], history, seed=0)
    params = registry.build("samplers", name).propose(search)
    draws = [score(SPACE.sample(random.Random(seed))) for seed in range(200)]
    assert score(params) > np.quantile(draws, 0.9)


def test_scores_of_the_task_correct_the_predictions():
    """The optimum of the task is elsewhere; its own scores lead away from that of other tasks."""
    own = []
    sampler = registry.build("samplers", "meta-model")
    for number in range(12):
        params = sampler.propose(Search(SPACE, MAX, own, others(), seed=number))
        value = score(params, shift=-0.9)  # the best rate is 0.8 instead of 0.1
        own.append(Trial(1000 + number, params, state="done", scores={"score": value}))
    values = [trial.scores["score"] for trial in own]
    assert max(values) > values[0] + 0.2


def test_the_mean_score_of_known_values_is_their_mean():
    """With the same values in every task, the order is that of the mean standardized scores."""
    params = [trial.params for trial in trials("table", 10)]
    rng = np.random.default_rng(0)
    table = rng.normal(size=(6, 10)) * rng.uniform(0.1, 10.0, (6, 1)) + rng.normal(size=(6, 1))
    history = [
        Trial(100 * task + at, each, task=str(task), state="done", scores={"score": value})
        for task, row in enumerate(table.tolist())
        for at, (each, value) in enumerate(zip(params, row, strict=True))
    ]
    model = MeanScore(SPACE, width=1e-6).fit(by_task(history, {"score": 1.0}))
    standardized = (table - table.mean(1, keepdims=True)) / table.std(1, keepdims=True)
    expected = standardized.mean(axis=0) * 6 / 6.5  # a prior of half a task
    np.testing.assert_allclose(model.predict(params, {})[0], expected, atol=1e-12)


def test_auto_uses_a_history_that_helps():
    sampler = AutoSampler()
    sampler.propose(Search(SPACE, MAX, [], others(), seed=0))
    assert sampler.choice in ("mean-score", "meta-model")
    assert sampler.errors[sampler.choice] == min(sampler.errors.values()) < sampler.errors["tpe"]


def test_auto_ignores_a_history_of_contradictory_tasks():
    """In two of four tasks the worst values are the best: each is predicted by its opposites."""
    history = others()
    for trial in history:
        if trial.task in "pq":
            trial.scores = {"score": -trial.scores["score"]}
    sampler = AutoSampler()
    sampler.propose(Search(SPACE, MAX, [], history, seed=0))
    assert sampler.choice == "tpe", sampler.errors


def test_auto_proposes_by_tpe_without_other_tasks_and_after_many_trials():
    sampler = AutoSampler(switch=4)
    sampler.propose(Search(SPACE, MAX, trials("own", 4), others(), seed=0))
    assert sampler.name == "auto: tpe"
    sampler.propose(Search(SPACE, MAX, [], trials("p"), seed=0))
    assert sampler.name == "auto: tpe"


def test_regrets_equal_a_simulation():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=9)
    best, simulated = scores.max(), []
    for _ in range(20_000):
        order = rng.permutation(9)
        simulated.append(np.mean([best - scores[order[:k]].max() for k in (1, 2, 4)]))
    np.testing.assert_allclose(random_regret(scores.tolist()), np.mean(simulated), atol=0.02)
    assert regret(scores.tolist(), scores.tolist()) == 0.0


def test_tpe_concentrates_on_the_optimum():
    sampler, own = registry.build("samplers", {"type": "tpe", "startup_trials": 5}), []
    for number in range(30):
        params = sampler.propose(Search(SPACE, MAX, own, seed=number))
        own.append(Trial(number, params, state="done", scores={"score": score(params)}))
    values = [trial.scores["score"] for trial in own]
    assert np.median(values[20:]) > np.median(values[:5]) + 0.3
