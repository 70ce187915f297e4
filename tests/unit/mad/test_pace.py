"""Estimates of the remaining time, in replays of recorded timings."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ember_ml.configs.mad import RunConfig
from ember_ml.mad import SCALES, Sweep, pace
from ember_ml.mad.pace import Pace
from ember_ml.mad.pool import Event, runs_to_probe
from ember_ml.mad.run import Point, probe
from ember_ml.mad.scores import task_of
from tests.unit.mad.sweeps import result

RECORDED = {
    (each["architecture"], each["task"]): each
    for each in json.loads(Path(__file__).with_name("timings.json").read_text())
}
"""CPU seconds of ten steps, of an evaluation and of the setup, and the number of steps until each
run stopped, of the scale mini with NumPy on one thread."""
ARCHITECTURES = list(dict.fromkeys(name for name, _ in RECORDED))


class Clock:
    """Clock that a replay sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(pace.time, "monotonic", lambda: self.now)


def timings(run: RunConfig) -> dict:
    return RECORDED[run.architecture, task_of(run)]


def steps_of(run: RunConfig, early: bool) -> int:
    return timings(run)["stopped_after"] if early else run.steps


def events_of(run: RunConfig, start: float, early: bool) -> Iterator[tuple[float, Event]]:
    """Yield the events of a run with their times, as recorded."""
    recorded, now = timings(run), start + timings(run)["setup"]
    yield start, Event(run, None)
    seconds = itertools.cycle(recorded["step_seconds"][1:])
    for step in range(1, steps_of(run, early) + 1):
        now += next(seconds)
        if step % run.evaluate_every == 0 or step == steps_of(run, early):
            now += recorded["evaluation"]
            yield now, Event(run, Point(step, 1.0, 0.5, 1.0))
    now += 5 * recorded["evaluation"]  # the test split has five times as many examples
    yield now, Event(run, result(0.5)._replace(steps=step, seconds=now - start))


def replay(sweep: Sweep, workers: int, early: bool) -> list[tuple[float, Event]]:
    """Return all events of a sweep by time: the measurements, then the runs in parallel."""
    rows, free = [], [0.0] * workers
    probes = {(run.architecture, task_of(run)): run for run in reversed(sweep.runs)}
    for run in reversed(probes.values()):
        first = timings(run)["step_seconds"][:3]
        seconds = timings(run)["setup"] + sum(first) + timings(run)["evaluation"]
        at = heapq.heappop(free) + seconds
        heapq.heappush(free, at)
        evaluations = timings(run)["evaluation"] * (10 + 5) / run.steps
        rows.append((at, Event(run, min(first[1:]) + evaluations)))
    for run in sweep.runs:
        events = list(events_of(run, heapq.heappop(free), early))
        heapq.heappush(free, events[-1][0])
        rows += events
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("early", [False, True], ids=["all steps", "early stops"])
@pytest.mark.parametrize(("seeds", "workers"), [(1, 1), (1, 2), (1, 4), (3, 2)])
def test_time_left_is_within_a_fifth_after_a_tenth(tmp_path, monkeypatch, seeds, workers, early):
    sweep = Sweep(ARCHITECTURES, tmp_path / "s", scale="mini", seeds=range(seeds), backend="numpy")
    clock, estimate = Clock(monkeypatch), Pace(sweep.runs)
    rows = replay(sweep, workers, early)
    end, checked = rows[-1][0], 0
    for at, event in rows:
        clock.now = at
        estimate.update(event)
        if 0.1 * end <= at <= 0.9 * end:
            assert estimate.seconds_left() == pytest.approx(end - at, rel=0.2)
            checked += 1
    assert checked > 50


def test_steps_cost_differently():
    """Otherwise a count of steps would do."""
    costs = [sum(each["step_seconds"][1:]) / 9 for each in RECORDED.values()]
    assert max(costs) > 5 * min(costs)


def test_there_is_no_estimate_without_a_measurement(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    sweep = Sweep(["gru"], tmp_path / "s", scale="tiny", backend="numpy")
    estimate = Pace(sweep.runs)
    clock.now += 30  # until a cluster is there
    estimate.update(Event(sweep.runs[0], None))
    clock.now += 20  # until the worker has a backend
    estimate.update(Event(sweep.runs[0], Point(2, 1.0, 0.5, 1.0)))
    assert estimate.seconds_left() is None
    clock.now += 1
    estimate.update(Event(sweep.runs[0], Point(4, 1.0, 0.5, 1.0)))
    assert estimate.seconds_left() == pytest.approx(0.5 * 4 * 5, rel=0.01)  # of the five others


def test_a_resumed_run_counts_from_its_checkpoint(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    sweep = Sweep(["gru"], tmp_path / "s", scale="mini", tasks=["copy"], backend="numpy")
    (run,) = sweep.runs
    estimate = Pace(sweep.runs)
    estimate.update(Event(run, None))
    estimate.update(Event(run, Point(400, 1.0, 0.5, 1.0)))  # the checkpoint
    clock.now += 10
    estimate.update(Event(run, Point(450, 1.0, 0.5, 1.0)))
    assert estimate.seconds_left() == pytest.approx(10)


def test_a_step_can_be_measured(backend):
    """Measured on any backend, without compiling the step."""
    sizes = {"vocab_size": 8, "seq_len": 8, "num_train": 64, "num_validation": 8, "num_test": 8}
    task = {"type": "in-context-recall", **sizes}
    run = RunConfig(architecture="gru", layers="gru", task=task, hidden_size=8, batch_size=8)
    assert probe(run) > 0


@pytest.mark.parametrize(("steps", "count"), [(99, 0), (100, 2)])
def test_only_long_runs_are_measured(tmp_path, steps, count):
    scale = SCALES["tiny"]._replace(steps=steps)
    sweep = Sweep(["gru", "lstm"], tmp_path, scale=scale, tasks=["copy"], seeds=[0, 1])
    probes = runs_to_probe(sweep.runs)
    assert [(run.architecture, run.seed) for run in probes] == [("gru", 0), ("lstm", 0)][:count]
