"""Population-based training."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ember_ml import ops, use_backend
from ember_ml.nn.layers import Dense
from ember_ml.training import Trainer
from ember_ml.training.sweeps import Event, Job, ProcessRunner, work_name
from ember_ml.training.tuning import (
    Choice,
    Float,
    HistoryError,
    Population,
    SearchSpace,
    SelfTuningModule,
    TuningError,
)
from ember_ml.training.tuning.exploration import explore
from ember_ml.training.tuning.train_objective import TrainObjective
from ember_ml.training.tuning.train_segment import run_segment
from tests.unit.training.tuning import objectives

SPACE = SearchSpace({"trainer.learning_rate": Float(1e-3, 0.9, log=True)})
OPTIONS = {"size": 8, "generations": 20, "interval": 2}


@pytest.fixture(autouse=True)
def _on_numpy():
    with use_backend("numpy"):
        yield


def job_of(segment) -> Job:
    return Job(work_name(objectives.descend), {"segment": segment._asdict()})


def here(source):
    """Run jobs in this process."""
    while (job := source()) is not None:
        yield Event(job, "started")
        try:
            yield Event(job, "done", objectives.descend(job.data, None))
        except FileNotFoundError as error:
            yield Event(job, "failed", str(error))


def trained(folder: Path, runner=here, **options) -> Population:
    population = Population(SPACE, folder, **{**OPTIONS, **options})
    for _ in population.events(runner, job_of):
        pass
    return population


def fixed_score(rate: float, folder: Path) -> float:
    segment = {"params": {"trainer.learning_rate": rate}, "start": None, "end": str(folder)}
    return objectives.descend({"segment": {**segment, "until_step": 40}}, None)


@pytest.mark.parametrize("seed", range(3))
def test_it_beats_every_fixed_learning_rate(seed: int, tmp_path: Path) -> None:
    """The best fixed rate of a fine grid loses to the schedule that the population found."""
    rates = [1e-3 * 900 ** (at / 60) for at in range(61)]
    best_fixed = max(fixed_score(rate, tmp_path / "fixed") for rate in rates)
    population = trained(tmp_path / "p", seed=seed)
    best = population.best()
    assert best.score is not None
    assert best.score > 0.75 * best_fixed, "both are negative"
    schedule = [each["trainer.learning_rate"] for each in population.schedule()]
    assert len(schedule) == 20
    assert schedule[0] > 2 * schedule[-1], "large steps first, small ones at the end"


def test_it_is_deterministic_for_any_number_of_workers(tmp_path: Path) -> None:
    one = trained(tmp_path / "a").finished
    scores = {key: (each.score, each.segment.params) for key, each in one.items()}
    for name, workers in (("b", 1), ("c", 3)):
        found = trained(tmp_path / name, ProcessRunner(workers, "numpy"), generations=4).finished
        assert all((each.score, each.segment.params) == scores[key] for key, each in found.items())
    other = trained(tmp_path / "d", seed=1)
    assert other.best().score != one[19, 0].score


@pytest.mark.parametrize("count", [1, 9, 20])
def test_it_continues(count: int, tmp_path: Path) -> None:
    """Segments that are done are not repeated, and the result is that of one call."""
    population = Population(SPACE, tmp_path / "a", **OPTIONS)
    events = population.events(here, job_of)
    done = 0
    while done < count:
        done += next(events).kind == "done"
    events.close()
    log = tmp_path / "a" / "population.jsonl"
    with log.open("ab") as file:
        file.write(b'{"kind": "segm')  # a write that was interrupted
    with pytest.warns(UserWarning, match="incomplete"):
        again = trained(tmp_path / "a")
    assert again.finished.keys() == trained(tmp_path / "b").finished.keys()
    assert again.best().score == trained(tmp_path / "b").best().score
    records = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    keys = [(r["segment"]["generation"], r["segment"]["member"]) for r in records if "segment" in r]
    assert len(keys) == len(set(keys)) == 160
    kept = {path.name[:4] for path in (tmp_path / "a" / "checkpoints").iterdir()}
    assert kept <= {"0018", "0019"}


def test_failed_members_are_replaced(tmp_path: Path) -> None:
    def failing(source):
        for event in here(source):
            segment = event.job.key
            if event.kind == "done" and segment.member % 2 and segment.generation == 0:
                yield Event(event.job, "failed", "Traceback\nMemoryError")
            else:
                yield event

    population = trained(tmp_path / "a", failing, generations=2)
    parents = {at: population.finished[1, at].segment.parent for at in range(8)}
    assert all(parents[at] % 2 == 0 for at in range(8))
    with pytest.raises(TuningError, match="all 8 members failed in generation 0"):
        trained(tmp_path / "b", lambda source: _all_fail(source))


def _all_fail(source):
    while (job := source()) is not None:
        yield Event(job, "failed", "Traceback\nMemoryError")


def test_exploration_stays_in_the_space() -> None:
    space = SearchSpace(
        {
            "trainer.learning_rate": Float(1e-3, 1e-1, log=True),
            "trainer.clip_norm": Choice([0.5, 1.0, None]),
        }
    )
    rng = random.Random(0)
    params = space.sample(rng)
    found = []
    for _ in range(200):
        params = space.check(explore(space, params, rng))
        found.append(params["trainer.learning_rate"])
    assert min(found) < 2e-3 < 5e-2 < max(found)


BASE = {
    "model": {"type": "layers/dense", "in_features": 3, "out_features": 1},
    "trainer": {"loss": "mse", "optimizer": "adam", "learning_rate": 0.01},
    "batch_size": 8,
}


def data():
    x = ops.random.normal((40, 3), seed=0)
    return x, ops.sum(x, axis=1, keepdims=True)


def test_segments_of_the_same_values_equal_uninterrupted_training(tmp_path: Path) -> None:
    objective = TrainObjective(SPACE, BASE, data(), data(), ("val_loss",))
    population = Population(SPACE, tmp_path / "p", size=2, generations=3, interval=4)
    params, score = {"trainer.learning_rate": 0.05}, float("nan")
    for generation in range(3):
        segment = population.segment(0, 0)._replace(
            params=params,
            start=None if generation == 0 else str(tmp_path / str(generation - 1)),
            end=str(tmp_path / str(generation)),
            until_step=4 * (generation + 1),
        )
        score = run_segment(objective, segment)
    ops.random.set_seed(population.segment(0, 0).seed)
    whole = Trainer(
        Dense(3, 1),
        "mse",
        optimizer="adam",
        learning_rate=0.05,
        seed=population.segment(0, 0).seed,
        progress=False,
    )
    whole.fit(data(), steps=12, batch_size=8)
    assert whole.evaluate(data())["loss"] == pytest.approx(score, rel=1e-5)
    changed = segment._replace(params={"trainer.learning_rate": 1e-3}, until_step=14)
    still = run_segment(objective, changed._replace(start=str(tmp_path / "2")))
    assert still == pytest.approx(score, rel=1e-2), "the new rate is used, not that of the start"


def test_fit_population(tmp_path: Path) -> None:
    tuner = SelfTuningModule(SPACE, None, "val_loss", "min", sampler="random", base=BASE)
    options = {"size": 3, "generations": 2, "interval": 5, "workers": 1}
    population = tuner.fit_population(data(), data(), tmp_path / "p", **options)
    assert len(population.finished) == 6
    best = population.best()
    assert best.score == min(population.finished[1, at].score for at in range(3))
    assert Path(best.segment.end, "training.json").exists()
    with pytest.raises(HistoryError, match="belongs to another population: interval is 5, not 6"):
        tuner.fit_population(data(), data(), tmp_path / "p", **{**options, "interval": 6})
    with pytest.raises(ValueError, match="size"):
        tuner.fit_population(data(), data(), tmp_path / "q", **{**options, "size": 1})
    other = SelfTuningModule(
        {"model.out_features": [1, 2]}, None, "val_loss", "min", sampler="random", base=BASE
    )
    with pytest.raises(TuningError, match=r"'model.out_features' cannot change during training"):
        other.fit_population(data(), data(), tmp_path / "r")
    scheduled = {**BASE, "trainer": {**BASE["trainer"], "schedule": "cosine"}}
    other = SelfTuningModule(SPACE, None, "val_loss", "min", sampler="random", base=scheduled)
    with pytest.raises(TuningError, match=r"remove trainer\.schedule"):
        other.fit_population(data(), data(), tmp_path / "r")
    assert not (tmp_path / "r").exists()
