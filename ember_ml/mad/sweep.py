"""A comparison of architectures: all its runs, done or gone on with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture, architecture
from ember_ml.mad.check import check_architectures
from ember_ml.mad.pool import Event, ProcessPool
from ember_ml.mad.run import Result
from ember_ml.mad.scales import get_scale, make_runs, task_names
from ember_ml.mad.sizes import check_sizes, sizes_of
from ember_ml.mad.store import Store, SweepError

Pool = Callable[[Sequence[RunConfig]], Iterator[Event]]
"""Does runs, and tells what happens to them."""


class Sweep:
    """All runs of a comparison, kept in a folder.

    A sweep that was stopped, or killed, goes on where it was: what is done is not done again.

    Args:
        architectures: patterns such as "attention+swiglu", or (name, pattern).
        path: the folder.
        scale: "mini", "base" or "full".
        tasks: their names; all if none is named.
        seeds: one run for each.
        backend: where to compute; the active backend if not given.
        same_parameters: the most parameters of an architecture on a task, as a multiple of the
            fewest; an error if it is more.
        same_state: the same of the states, of those that are fixed.

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
        scale: str = "mini",
        tasks: Sequence[str] = (),
        seeds: Sequence[int] = (0,),
        backend: str | None = None,
        same_parameters: float | None = None,
        same_state: float | None = None,
    ) -> None:
        from ember_ml.backend import get_backend

        self.scale = get_scale(scale)
        self.architectures = _named(architectures)
        self.tasks = task_names(tasks)
        self.seeds = list(seeds)
        if not self.seeds:
            raise ArgumentError("Sweep: name at least one seed")
        self.backend = backend or get_backend()
        self.store = Store(path)
        self.runs = make_runs(self.scale, self.architectures, self.tasks, self.seeds)
        check_architectures(self.runs)
        if same_parameters is not None or same_state is not None:
            found = sizes_of(self.runs)
            check_sizes(found, parameters=same_parameters, state=same_state)

    def remaining(self) -> list[RunConfig]:
        """The runs that are not done."""
        return [run for run in self.runs if not self.store.is_done(run)]

    def events(self, pool: Pool | None = None) -> Iterator[Event]:
        """Do what remains, and tell what happens; results are kept before they are told.

        Args:
            pool: what does the runs; processes of this machine if not given.
        """
        self.open()
        pool = ProcessPool(None, self.backend) if pool is None else pool
        with self.store.locked():
            left = self.remaining()
            for event in pool(left) if left else ():
                if isinstance(event.what, Result):
                    self.store.write(event.run, event.what)
                elif isinstance(event.what, str):
                    self.store.write_failure(event.run, event.what)
                yield event

    def open(self) -> None:
        """Make the folder, or see that the one that is there is of such a sweep."""
        plan = {
            "architectures": [list(each) for each in self.architectures],
            "tasks": self.tasks,
            "seeds": self.seeds,
        }
        self.store.open({"scale": self.scale.name, "backend": self.backend}, plan)
        self._refuse_namesakes()

    def _refuse_namesakes(self) -> None:
        """An architecture of the folder that has the name of another would be mixed up with it."""
        known = {each.name: each.layers for each in self.architectures}
        for run in [each.run for each in self.store.done()]:
            if known.get(run.architecture, run.layers) != run.layers:
                raise SweepError(
                    f"{self.store.path} has results of {run.architecture!r} as {run.layers!r}, not "
                    f"{known[run.architecture]!r}; give it another name, or take another folder"
                )

    def run(self, pool: Pool | None = None) -> None:
        """Do what remains, in silence."""
        for _ in self.events(pool):
            pass


def _named(given: Sequence[Any]) -> list[Architecture]:
    """Architectures of patterns or (name, pattern), each name once."""
    given = [given] if isinstance(given, str) else given
    if not given:
        raise ArgumentError("Sweep: name at least one architecture, such as 'attention+swiglu'")
    found = [
        architecture(item) if isinstance(item, str) else architecture(item[1], item[0])
        for item in given
    ]
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(
            f"Sweep: {', '.join(twice)} is named twice; give each a name of its own"
        )
    return found
