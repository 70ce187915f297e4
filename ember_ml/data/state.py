"""Position of a loader, and the check of a saved one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.errors import check_integer


@dataclasses.dataclass
class Progress:
    """Position of a loop: its epoch and the number of batches received.

    Each loop has its own; the loader has that of the last loop.

    Args:
        epoch: Number of the epoch.
        batches: Number of batches received in the epoch.
        start: Value of `batches` at the start of the loop.
        running: Whether a loop has started and not finished.
    """

    epoch: int = 0
    batches: int = 0
    start: int = 0
    running: bool = False

    def begun(self) -> Progress:
        """Return the position of a new loop: the next epoch if a loop left this one early."""
        if self.running and self.batches > self.start:
            return Progress(self.epoch + 1, running=True)
        return Progress(self.epoch, self.batches, start=self.batches, running=True)

    def finish(self) -> None:
        """Move to the start of the next epoch."""
        self.epoch += 1
        self.batches = self.start = 0
        self.running = False


def checked_state(state: object, identity: Mapping[str, object]) -> tuple[int, int]:
    """Return epoch and batches of a state; raise if it is from a loader with other settings.

    Args:
        state: Result of `DataLoader.state_dict`.
        identity: Settings of the loader by name.
    """
    if not isinstance(state, Mapping):
        raise ArgumentTypeError(f"DataLoader: the state must be a dict, not {state!r:.60}")
    expected = {"epoch", "batches", *identity}
    if set(state) != expected:
        raise ArgumentError(
            f"DataLoader: the state must have the keys {', '.join(sorted(expected))}, not "
            f"{', '.join(sorted(map(str, state)))}"
        )
    for name, own in identity.items():
        if state[name] != own:
            raise ArgumentError(
                f"DataLoader: the state is from a loader with {name}={state[name]!r}, but this one "
                f"has {name}={own!r}"
            )
    where = "DataLoader.load_state_dict"
    return (
        check_integer(where, "epoch", state["epoch"], 0),
        check_integer(where, "batches", state["batches"], 0),
    )
