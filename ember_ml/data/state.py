"""How far a loader is, and what it takes to go on from there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import _checks


@dataclasses.dataclass
class Progress:
    """The batches that a loop has received; each loop has its own, the loader the last loop's."""

    epoch: int = 0
    batches: int = 0
    start: int = 0
    running: bool = False

    def begun(self) -> Progress:
        """That of a new loop: the next epoch if a loop has left this one on its way."""
        if self.running and self.batches > self.start:
            return Progress(self.epoch + 1, running=True)
        return Progress(self.epoch, self.batches, start=self.batches, running=True)

    def finish(self) -> None:
        """Stand before the next epoch."""
        self.epoch += 1
        self.batches = self.start = 0
        self.running = False


def checked_state(state: Any, identity: Mapping[str, Any]) -> tuple[int, int]:
    """Epoch and batches of a state, if it is of a loader with that identity."""
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"DataLoader: a state is a dict, not {state!r:.60}")
    expected = {"epoch", "batches", *identity}
    if set(state) != expected:
        raise ArgumentError(
            f"DataLoader: a state has {', '.join(sorted(expected))}; this one has "
            f"{', '.join(sorted(map(str, state)))}"
        )
    for name, own in identity.items():
        if state[name] != own:
            raise ArgumentError(
                f"DataLoader: the state is of a loader with {name}={state[name]!r}, this one has "
                f"{name}={own!r}"
            )
    where = "DataLoader.load_state_dict"
    return (
        _checks.integer(where, "epoch", state["epoch"], 0),
        _checks.integer(where, "batches", state["batches"], 0),
    )
