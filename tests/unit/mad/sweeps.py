"""Sweep folders with results made up for the tests of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture, architecture
from ember_ml.mad.run import Point, Result
from ember_ml.mad.scales import SCALES, Scale, make_runs
from ember_ml.mad.store import Store

THREE = (
    architecture("attention+swiglu"),
    architecture("hyena+swiglu"),
    architecture("mamba+swiglu"),
)
TASKS = ("memorization", "compression")
HARDER = SCALES["full"]._replace(name="own", learning_rates=(1e-3,), weight_decays=(0.0,))
"""Every difficulty, once."""


def result(accuracy: float, macro: float | None = None, loss: float = 1.0) -> Result:
    """Return a result with an accuracy that was reached linearly."""
    curve = tuple(Point(10 * at, 3.0 - at, accuracy * at / 3, 4.0 - at) for at in (1, 2, 3))
    macro = accuracy / 2 if macro is None else macro
    return Result(accuracy, macro, loss, accuracy, loss, 30, 2.0, 0.0125, 123_456, 4096, 0, curve)


def write_sweep(
    path: Path,
    outcome: Callable[[RunConfig], Result | str | None],
    architectures: Sequence[Architecture] = THREE,
    tasks: Sequence[str] = TASKS,
    seeds: Sequence[int] = (0,),
    scale: Scale = SCALES["mini"],
) -> Path:
    """Write the folder of a sweep; each run has the given outcome: a result, an error or none."""
    store = Store(path)
    plan = {
        "architectures": [list(each) for each in architectures],
        "tasks": list(tasks),
        "seeds": list(seeds),
    }
    about = {"scale": scale.name, "backend": "numpy", "settings": scale.settings()}
    store.open(about, plan)
    for run in make_runs(scale, architectures, tasks, seeds):
        found = outcome(run)
        if isinstance(found, Result):
            store.write(run, found)
        elif found is not None:
            store.write_failure(run, found)
    return path
