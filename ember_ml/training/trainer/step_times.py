"""Times of steps by the shapes of their batches."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

Shapes: TypeAlias = tuple[object, ...]
"""The shapes of the batches of a step."""


class StepTimes:
    """Times of steps that do the same work if their batches have the same shapes."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Shapes, list[float]] = defaultdict(list)

    def add(self, shapes: Shapes, seconds: float) -> None:
        """Add a step.

        Args:
            shapes: The shapes of its batches.
            seconds: Its time.
        """
        self._seconds[shapes].append(seconds)

    def shortest(self, steps: Sequence[Shapes]) -> float | None:
        """Return the mean over steps of the shortest time with the same shapes; None if unknown.

        If the shapes of a step are new, it is the mean of all times.

        Args:
            steps: The shapes of the batches of each step, at least one.

        Example:
            >>> from ember_ml.training.trainer.step_times import StepTimes
            >>> times = StepTimes()
            >>> for size, seconds in ((64, 5.0), (36, 2.0), (64, 4.0)):
            ...     times.add((size,), seconds)
            >>> times.shortest([(64,)]), times.shortest([(64,), (36,)])
            (4.0, 3.0)
        """
        if not self._seconds:
            return None
        if all(shapes in self._seconds for shapes in steps):
            return statistics.fmean(min(self._seconds[shapes]) for shapes in steps)
        return statistics.fmean(x for times in self._seconds.values() for x in times)
