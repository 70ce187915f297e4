"""What a causal context holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Position = tuple[float, ...]


@dataclass(frozen=True)
class Spatial:
    """Where an op took place.

    Attributes:
        inputs: the positions of the operands; None for those without one.
        position: the middle of the operands' positions, which the results inherit; None if no
            operand has one.
        distance: the longest way from an operand to that middle.
    """

    inputs: tuple[Position | None, ...]
    position: Position | None
    distance: float


@dataclass(frozen=True)
class Temporal:
    """When an op took place.

    Attributes:
        tick: its number, counted from the first.
        elapsed: seconds since the recording started.
        depth: how many ops lead to it, along the longest path.
        delays: for each operand, how many ticks ago it was made; None for one from outside.
    """

    tick: int
    elapsed: float
    depth: int
    delays: tuple[int | None, ...]


@dataclass(frozen=True)
class Causal:
    """What an op came from.

    Attributes:
        causes: for each operand, the tick of the op that made it; None for one from outside.
        sources: the registered tensors that it depends on, directly or not, by name.
    """

    causes: tuple[int | None, ...]
    sources: frozenset[str]


@dataclass(frozen=True)
class Event:
    """An op that took place."""

    operation: str
    shapes: tuple[tuple[int, ...], ...]
    """Of the results."""
    spatial: Spatial
    temporal: Temporal
    causal: Causal
    values: tuple[int, ...] = field(repr=False)
    """What the operands are known by."""
    made: tuple[int, ...] = field(repr=False)
    """What the results are known by."""
    step: Any = field(default=None, repr=False, compare=False)
    """The call itself, to be run again; None for an operation that was registered by hand."""

    @property
    def tick(self) -> int:
        """Its number."""
        return self.temporal.tick
