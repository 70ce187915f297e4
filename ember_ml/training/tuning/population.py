"""Population-based training: hyperparameters change while the models train."""

from __future__ import annotations

import math
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml._core import locks
from ember_ml.data.errors import check_integer
from ember_ml.training.sweeps.jobs import Event, Job, Runner
from ember_ml.training.tuning.errors import HistoryError, TuningError
from ember_ml.training.tuning.exploration import explore
from ember_ml.training.tuning.log_file import LogFile
from ember_ml.training.tuning.space import Params, SearchSpace

QUANTILE = 0.25
"""Fraction of members that are replaced after each generation, by members of the best fraction."""


class Segment(NamedTuple):
    """Training of one member during one generation, as plain data."""

    generation: int
    member: int
    params: dict[str, Any]
    """Hyperparameters by dotted key."""
    seed: int
    """Seed of the initial weights and of the order of the data, the same as that of the parent."""
    parent: int
    """Member whose checkpoint of the previous generation it continues from; itself by default."""
    start: str | None
    """Folder of the checkpoint to continue from; None in the first generation."""
    end: str
    """Folder to write a checkpoint to."""
    until_step: int
    """Number of training steps at its end."""


class Finished(NamedTuple):
    """A segment and its score."""

    segment: Segment
    score: float | None
    """None if it failed or diverged."""


class Population:
    """Members that train in parallel; after each generation, bad ones continue from good ones.

    A generation is `interval` training steps of every member. Then the worst quarter of the members
    copy the checkpoints and hyperparameters of members of the best quarter (exploit) and change the
    hyperparameters (explore). Decisions depend on the scores and the seed only, so the result does
    not depend on the number of workers. A search that was killed continues: segments that are done
    are not repeated.

    Args:
        space: Hyperparameters that may change during training.
        folder: Folder of the checkpoints and of `population.jsonl`.
        size: Number of members. At least 2.
        generations: Number of generations.
        interval: Number of training steps of a generation.
        mode: Whether the score is maximized ("max") or minimized ("min").
        seed: Seed of the first hyperparameters and of all changes.

    Reference: Jaderberg et al., "Population Based Training of Neural Networks", 2017.
    """

    def __init__(
        self,
        space: SearchSpace,
        folder: str | os.PathLike[str],
        *,
        size: int = 8,
        generations: int = 8,
        interval: int = 100,
        mode: str = "max",
        seed: int = 0,
    ) -> None:
        self.space = space
        self.folder = Path(folder)
        self.size = check_integer("Population", "size", size, least=2)
        self.generations = check_integer("Population", "generations", generations, least=1)
        self.interval = check_integer("Population", "interval", interval, least=1)
        self.mode = mode
        self.seed = seed
        self.finished: dict[tuple[int, int], Finished] = {}
        self._log = LogFile(self.folder / "population.jsonl")
        with self._log.locked():
            self._read()

    def _header(self) -> dict[str, Any]:
        return {
            "kind": "population",
            "space": self.space.to_dict(),
            "size": self.size,
            "interval": self.interval,
            "mode": self.mode,
            "seed": self.seed,
        }

    def _read(self) -> None:
        """Read the segments that are done; refuse those of another population."""
        records = [record for _, record in self._log.new_records()]
        if not records:
            self._log.append(self._header())
            return
        header = self._header()
        wrong = [key for key in header if records[0].get(key) != header[key]]
        if wrong:
            raise HistoryError(
                f"{self._log.path} belongs to another population: {wrong[0]} is "
                f"{records[0].get(wrong[0])!r:.200}, not {header[wrong[0]]!r:.200}; use another "
                "folder"
            )
        for record in records[1:]:
            if record["kind"] == "segment":
                self._add(Finished(Segment(**record["segment"]), record["score"]))

    def _add(self, finished: Finished) -> None:
        key = finished.segment.generation, finished.segment.member
        self.finished[key] = finished

    def segment(self, generation: int, member: int) -> Segment:
        """Return what a member trains in a generation; the previous one must be complete.

        Args:
            generation: Number of the generation, from 0.
            member: Number of the member.
        """
        if generation == 0:
            rng = random.Random(f"{self.seed}/first/{member}")
            parent, seed, params = member, rng.getrandbits(32), self.space.sample(rng)
        else:
            parent, params = self._continue(generation, member)
            seed = self.finished[generation - 1, parent].segment.seed
        return Segment(
            generation,
            member,
            params,
            seed,
            parent,
            None if generation == 0 else self._checkpoint(generation - 1, parent),
            self._checkpoint(generation, member),
            (generation + 1) * self.interval,
        )

    def _checkpoint(self, generation: int, member: int) -> str:
        return str(self.folder.absolute() / "checkpoints" / f"{generation:04}-{member:04}")

    def _continue(self, generation: int, member: int) -> tuple[int, Params]:
        """Return the member to continue from, and the hyperparameters: exploit and explore."""
        ranked = self.ranked(generation - 1)
        count = max(1, round(QUANTILE * self.size))
        best = [each for each in ranked[:count] if each.score is not None]
        if not best:
            raise TuningError(
                f"Population: all {self.size} members failed in generation {generation - 1}"
            )
        own = self.finished[generation - 1, member]
        if own.score is not None and own not in ranked[-count:]:
            return member, own.segment.params
        rng = random.Random(f"{self.seed}/{generation}/{member}")
        source = best[int(rng.random() * len(best))].segment
        return source.member, explore(self.space, source.params, rng)

    def ranked(self, generation: int) -> list[Finished]:
        """Return the members of a complete generation, best first.

        Args:
            generation: Number of the generation.
        """
        sign = 1.0 if self.mode == "max" else -1.0

        def key(each: Finished) -> tuple[bool, float, int]:
            score = 0.0 if each.score is None else -sign * each.score
            return each.score is None, score, each.segment.member

        return sorted((self.finished[generation, member] for member in range(self.size)), key=key)

    def events(self, runner: Runner, job_of: Callable[[Segment], Job]) -> Iterator[Event]:
        """Train the remaining generations, and yield the events of the segments.

        Args:
            runner: Does the segments.
            job_of: Returns the job of a segment, whose result is the score. It must write the
                checkpoint before it returns.
        """
        active: set[tuple[int, int]] = set()

        def source() -> Job | None:
            generation = self._current()
            for member in range(self.size if generation < self.generations else 0):
                key = generation, member
                if key not in self.finished and key not in active:
                    active.add(key)
                    segment = self.segment(*key)
                    return job_of(segment)._replace(key=segment)
            return None  # a generation begins when all members have finished the one before

        with locks.locked(self.folder / ".lock") as is_ours:
            if not is_ours:
                raise TuningError(f"another process trains the population in {self.folder}")
            for event in runner(source):
                self._record(event)
                yield event

    def _current(self) -> int:
        """Return the first generation that is not complete, and remove what it does not need."""
        generation = 0
        while all((generation, member) in self.finished for member in range(self.size)):
            generation += 1
        for member in range(self.size if generation > 1 else 0):
            shutil.rmtree(self._checkpoint(generation - 2, member), ignore_errors=True)
        return generation

    def _record(self, event: Event) -> None:
        if event.kind not in ("done", "failed"):
            return
        score = float(event.value) if event.kind == "done" else None
        if score is not None and not math.isfinite(score):
            score = None
        record = {"kind": "segment", "segment": event.job.key._asdict(), "score": score}
        if event.kind == "failed":
            record["error"] = event.value.strip().rpartition("\n")[2]
        self._log.append(record)
        self._add(Finished(event.job.key, score))

    def best(self) -> Finished:
        """Return the best member of the last generation; all generations must be complete."""
        return self.ranked(self.generations - 1)[0]

    def schedule(self, finished: Finished | None = None) -> list[Mapping[str, Any]]:
        """Return the hyperparameters of each generation along the ancestors of a member.

        Args:
            finished: Segment of the member. Default: the best one.
        """
        at = (finished or self.best()).segment
        found: list[Mapping[str, Any]] = [at.params]
        while at.generation:
            at = self.finished[at.generation - 1, at.parent].segment
            found.append(at.params)
        return found[::-1]
