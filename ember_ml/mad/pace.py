"""Estimate of the remaining time of a sweep."""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Iterable, Sequence

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event
from ember_ml.mad.run import Point, Result
from ember_ml.mad.store import Done, run_name, setting_of

Group = tuple[str, str]
"""Architecture and setting, whose runs have the same cost."""


class _Active:
    """Progress of a run: its start, and its first and latest evaluation in this process."""

    def __init__(self, run: RunConfig, now: float) -> None:
        self.run = run
        self.started = now
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, int] = now, 0

    def update(self, step: int, now: float) -> None:
        """Record an evaluation."""
        self.first = self.first or (now, step)
        self.last = now, step

    def seconds_per_step(self) -> float | None:
        """Return the measured time of a step; the first evaluation includes the startup."""
        if self.first is None:
            return None
        seconds, steps = (late - early for late, early in zip(self.last, self.first, strict=True))
        return seconds / steps if steps else None


class Pace:
    """Estimate of the remaining time, from the cost of a step by architecture and setting.

    A cost comes from finished runs, from evaluations of active ones, or from the measurement of a
    few steps that a pool makes before the runs begin. Measurements are corrected by the ratio of
    the costs of the runs so far to their measurements. Runs stop early once a task is learned:
    those that follow are expected to take as many steps as the finished runs of their architecture
    and setting.

    Args:
        runs: Runs to do, in order.
        done: Runs that were done before, whose numbers of steps are known.
    """

    def __init__(self, runs: Sequence[RunConfig], done: Iterable[Done] = ()) -> None:
        self._waiting = {run_name(run): run for run in runs}
        self._active: dict[str, _Active] = {}
        self._workers = 0
        self._measured: dict[Group, float] = {}
        self._costs: dict[Group, list[float]] = {}
        self._steps: dict[Group, list[float]] = {}
        for each in done:
            self._add_steps(each.run, each.result.steps)

    def update(self, event: Event) -> None:
        """Record an event of a run."""
        name, now = run_name(event.run), time.monotonic()
        if isinstance(event.payload, float):
            self._measured[_group(event.run)] = event.payload
        elif event.payload is None:
            self._waiting.pop(name, None)
            self._active[name] = _Active(event.run, now)
            self._workers = max(self._workers, len(self._active))
        elif isinstance(event.payload, Point):
            self._waiting.pop(name, None)
            self._active.setdefault(name, _Active(event.run, now)).update(event.payload.step, now)
        else:
            self._finish(event.run, event.payload)

    def _finish(self, run: RunConfig, outcome: Result | str) -> None:
        self._waiting.pop(run_name(run), None)
        active = self._active.pop(run_name(run), None)
        if not isinstance(outcome, Result):
            return
        self._add_steps(run, outcome.steps)
        resumed = (
            active is not None
            and active.first is not None
            and (active.first[1] > run.evaluate_every)
        )
        cost = active.seconds_per_step() if resumed and active else outcome.seconds / outcome.steps
        if cost is not None:
            self._costs.setdefault(_group(run), []).append(cost)

    def _add_steps(self, run: RunConfig, steps: int) -> None:
        self._steps.setdefault(_group(run), []).append(steps / run.steps)

    def seconds_left(self) -> float | None:
        """Return the estimated remaining time; None if there is no estimate yet."""
        costs = self._known_costs()
        if not costs:
            return None
        now = time.monotonic()
        left = [self._left(active, costs, now) for active in self._active.values()]
        ends = [*left, *[0.0] * (self._workers - len(left))]
        heapq.heapify(ends)
        for run in self._waiting.values():  # the next run goes to the worker that is free first
            seconds = self._cost(run, costs) * self._expected_steps(run)
            heapq.heapreplace(ends, ends[0] + seconds) if ends else ends.append(seconds)
        return max(ends, default=0.0)

    def _known_costs(self) -> dict[Group, float]:
        costs = {group: statistics.fmean(values) for group, values in self._costs.items()}
        for active in self._active.values():
            seconds = active.seconds_per_step()
            if seconds is not None:
                costs.setdefault(_group(active.run), seconds)
        return costs

    def _cost(self, run: RunConfig, costs: dict[Group, float]) -> float:
        """Return the expected seconds of a step of a run, with its evaluations."""
        group = _group(run)
        if group in costs:
            return costs[group]
        if group in self._measured:
            return self._measured[group] * self._correction(run.architecture, costs)
        same = [cost for (name, _), cost in costs.items() if name == run.architecture]
        return statistics.fmean(same or costs.values())

    def _correction(self, architecture: str, costs: dict[Group, float]) -> float:
        """Return the ratio of actual to measured costs, of the same architecture if known."""
        ratios = {
            group: cost / self._measured[group]
            for group, cost in costs.items()
            if self._measured.get(group)
        }
        own = [ratio for (name, _), ratio in ratios.items() if name == architecture]
        return statistics.fmean(own or ratios.values() or [1.0])

    def _expected_steps(self, run: RunConfig) -> float:
        return run.steps * statistics.fmean(self._steps.get(_group(run), [1.0]))

    def _left(self, active: _Active, costs: dict[Group, float], now: float) -> float:
        """Return the remaining time of an active run."""
        at, step = active.last
        steps = max(self._expected_steps(active.run) - step, 0)
        seconds = self._cost(active.run, costs) * steps
        return max(seconds - (now - at), 0.0)


def _group(run: RunConfig) -> Group:
    return run.architecture, setting_of(run)
