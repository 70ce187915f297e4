"""Sweep: all runs of a comparison of architectures."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator, Sequence

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.mad import RunConfig
from ember_ml.data.errors import check_integer
from ember_ml.mad.architecture import Architecture, architecture, check_architectures
from ember_ml.mad.pool import Event, ProcessPool
from ember_ml.mad.run import Result
from ember_ml.mad.scales import Scale, get_scale, make_runs, task_names
from ember_ml.mad.sizes import SizesWarning, check_sizes, size_warnings, sizes_of
from ember_ml.mad.store import Store, SweepError
from ember_ml.mad.tuning import SweepTuning
from ember_ml.training.sweeps import Event as TrialEvent
from ember_ml.training.sweeps import ProcessRunner, Runner

Pool = Callable[[Sequence[RunConfig]], Iterator[Event]]
"""Does runs and yields their events."""


class Sweep:
    """All runs of a comparison, with results in a folder.

    A sweep that was interrupted or killed continues where it stopped: completed runs are not
    repeated, and unfinished ones continue from their last checkpoint.

    Args:
        architectures: Patterns such as "attention+swiglu", or (name, pattern) tuples.
        path: Folder of the results.
        scale: "tiny", "mini", "base", "full" or a `Scale`, such as
            `SCALES["mini"]._replace(hidden_size=32, steps=200)`.
        tasks: Names of the tasks. Default: all.
        seeds: Seeds, one run for each.
        backend: Backend of the runs. Default: the active one.
        same_parameters: Maximum ratio of the largest to the smallest parameter count on a task; a
            larger one raises a `SizesError`.
        same_state: Maximum ratio of the largest to the smallest fixed state on a task.
        tune: Number of trials with which each architecture gets its own learning rate and weight
            decay on each task, before its runs. Default: those of the scale.

    Example:
        >>> from ember_ml.mad import Sweep
        >>> sweep = Sweep(["attention+swiglu", "mamba+swiglu"], "runs/mad", tasks=["memorization"])
        >>> len(sweep.runs)
        2
    """

    def __init__(
        self,
        architectures: Sequence[str | tuple[str, str]],
        path: str | os.PathLike[str],
        *,
        scale: str | Scale = "mini",
        tasks: Sequence[str] = (),
        seeds: Sequence[int] = (0,),
        backend: str | None = None,
        same_parameters: float | None = None,
        same_state: float | None = None,
        tune: int | None = None,
    ) -> None:
        from ember_ml.backend import get_backend

        self.scale = get_scale(scale)
        if tune is not None:
            check_integer("Sweep", "tune", tune, least=1)
            rates = self.scale.grid()[0]  # of an architecture all of whose trials failed
            self.scale = self.scale._replace(
                learning_rates=(rates.learning_rate,), weight_decays=(rates.weight_decay,)
            )
        self.architectures = _parse_architectures(architectures)
        self.tasks = task_names(tasks)
        self.seeds = list(seeds)
        if not self.seeds:
            raise ArgumentError("Sweep: seeds must not be empty")
        self.backend = backend or get_backend()
        self.store = Store(path)
        self.runs = make_runs(self.scale, self.architectures, self.tasks, self.seeds)
        check_architectures(self.runs)
        self.tuning = self._tuning(tune)
        if same_parameters is not None or same_state is not None:
            check_sizes(sizes_of(self.runs), parameters=same_parameters, state=same_state)

    def _tuning(self, budget: int | None) -> SweepTuning | None:
        if budget is None:
            return None
        path, seed = self.store.path, self.seeds[0]
        return SweepTuning(path, budget, self.architectures, self.tasks, self.scale, seed)

    def tune(self, runner: Runner) -> Iterator[TrialEvent]:
        """Run the trials of the tuning that are missing, and yield their events.

        The runs of the sweep then have the best hyperparameters.

        Args:
            runner: Does the trials.
        """
        if self.tuning is None:
            return
        with self.store.locked():
            yield from self.tuning.events(runner)
        self._use_tuned()

    def _use_tuned(self) -> None:
        """Replace the hyperparameters of the runs by the tuned ones, if all trials are over."""
        if self.tuning is not None and self.tuning.is_complete():
            rates = self.tuning.rates()
            self.runs = make_runs(self.scale, self.architectures, self.tasks, self.seeds, rates)

    @functools.cached_property
    def size_warnings(self) -> list[str]:
        """Sentences about architectures of unequal size; empty if they are comparable."""
        return size_warnings(sizes_of(self.runs)) if len(self.architectures) > 1 else []

    def remaining(self) -> list[RunConfig]:
        """Return the runs that are not done."""
        return [run for run in self.runs if not self.store.is_done(run)]

    def events(self, pool: Pool | None = None) -> Iterator[Event]:
        """Do the remaining runs and yield their events.

        A result is written to the folder before its event is yielded.

        Args:
            pool: Does the runs. Default: processes of this machine.
        """
        self.open()
        if pool is None:
            pool = ProcessPool(None, self.backend, checkpoints=self.store.checkpoints)
        if self.tuning is not None and not self.tuning.is_complete():
            for _ in self.tune(getattr(pool, "runner", ProcessRunner(None, self.backend))):
                pass
        with self.store.locked():
            remaining = self.remaining()
            for event in pool(remaining) if remaining else ():
                if isinstance(event.payload, Result):
                    self.store.write(event.run, event.payload)
                elif isinstance(event.payload, str):
                    self.store.write_failure(event.run, event.payload)
                yield event

    def open(self) -> None:
        """Create the folder, or check that it belongs to a sweep of the same kind."""
        plan = {
            "architectures": [list(each) for each in self.architectures],
            "tasks": self.tasks,
            "seeds": self.seeds,
        }
        about = {
            "scale": self.scale.name,
            "backend": self.backend,
            "settings": self.scale.settings(),
            "tuning": None if self.tuning is None else {"budget": self.tuning.budget},
        }
        self.store.open(about, plan)
        self._check_names()
        self._use_tuned()

    def _check_names(self) -> None:
        """Raise an error if the folder has results of another architecture of the same name."""
        layers = {each.name: each.layers for each in self.architectures}
        for run in [each.run for each in self.store.done()]:
            if layers.get(run.architecture, run.layers) != run.layers:
                raise SweepError(
                    f"{self.store.path} has results of {run.architecture!r} with the layers "
                    f"{run.layers!r}, not {layers[run.architecture]!r}; use another name, or "
                    "another folder"
                )

    def run(self, pool: Pool | None = None) -> None:
        """Do the remaining runs without output.

        A `SizesWarning` is issued if the architectures are of unequal size.

        Args:
            pool: Does the runs. Default: processes of this machine.
        """
        for sentence in self.size_warnings:
            warnings.warn(sentence, SizesWarning, stacklevel=2)
        for _ in self.events(pool):
            pass


def _parse_architectures(given: Sequence[str | tuple[str, str]]) -> list[Architecture]:
    given = [given] if isinstance(given, str) else given
    if not given:
        raise ArgumentError("Sweep: name at least one architecture, such as 'attention+swiglu'")
    architectures = [
        architecture(item) if isinstance(item, str) else architecture(item[1], item[0])
        for item in given
    ]
    names = [each.name for each in architectures]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"Sweep: {', '.join(twice)} is named twice; names must be unique")
    return architectures
