"""Length of a call of `fit`."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml.data import DataLoader


class Start(NamedTuple):
    """Numbers of completed epochs and steps when a call of `fit` started."""

    epoch: int
    step: int


class Limit(NamedTuple):
    """Total numbers of epochs and steps at which `fit` ends."""

    epochs: float
    steps: float

    def reached(self, epoch: int, step: int) -> bool:
        """Return whether the limit is reached."""
        return epoch >= self.epochs or step >= self.steps

    def total(self, loader: DataLoader, accumulate: int, epoch: int, step: int) -> int | None:
        """Return the number of the last step, or None if it is unknown.

        Args:
            loader: Loader at its current position.
            accumulate: Number of batches of a step.
            epoch: Number of epochs done.
            step: Number of steps done.
        """
        length = loader.num_batches
        if length is None or math.isinf(self.epochs):
            return None if math.isinf(self.steps) else int(self.steps)
        rest = length - loader.state_dict()["batches"]
        later = max(0, int(self.epochs) - epoch - 1) * -(-length // accumulate)
        return int(min(self.steps, step + -(-rest // accumulate) + later))


def limit_of(
    start: Start,
    epochs: int | None,
    steps: int | None,
    until_epoch: int | None,
    until_step: int | None,
) -> Limit:
    """Return the limit for the arguments of `fit`.

    Args:
        start: Where this call started; in a resumed run, where the saved call did.
        epochs: Number of epochs from the start.
        steps: Number of steps from the start.
        until_epoch: Total number of epochs.
        until_step: Total number of steps.
    """
    given = {
        "epochs": epochs,
        "steps": steps,
        "until_epoch": until_epoch,
        "until_step": until_step,
    }
    for name, value in given.items():
        if value is not None and (not _is_integer(value) or value < 0):
            raise ArgumentError(f"fit: {name} must be an integer of at least 0, not {value!r:.60}")
    if all(value is None for value in given.values()):
        epochs = 1
    return Limit(
        min(_end(start.epoch, epochs), _end(0, until_epoch)),
        min(_end(start.step, steps), _end(0, until_step)),
    )


def _is_integer(value: Any) -> bool:
    """Return whether a value is one integer, of any library."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _end(start: int, count: int | None) -> float:
    return math.inf if count is None else start + count
