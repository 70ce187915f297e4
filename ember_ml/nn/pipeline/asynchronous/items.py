"""Items of an asynchronous pipeline, from acceptance to outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from ember_ml.nn.pipeline.asynchronous.streams import MapState

Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "expired", "skipped"]
"""What became of an accepted item; each has exactly one outcome."""


@dataclass(frozen=True)
class Failure:
    """Failed item, in place of its result, of a stage with `on_error="yield"`."""

    stage: str
    """Name of the stage."""
    index: int
    """Position of the item in the source of `map`, or number of the submitted item."""
    error: BaseException
    """What the stage raised."""


class Result(NamedTuple):
    """Result of an item: a value, an error to raise, or neither for an item without a result."""

    kind: Literal["value", "error", "none"]
    value: Any = None
    error: BaseException | None = None


NONE = Result("none")


class Holder(Protocol):
    """Place of an item: a queue, or a running call."""

    def discard(self, item: Item) -> None:
        """Remove an item that has its outcome."""


class Item:
    """Accepted item.

    Args:
        index: Position in the source of `map`, or number of the submitted item.
        value: Input of the next stage.
        deadline: Time of the event loop after which no stage runs; None without deadline.
        source: State of the `map` that read the item; None for a submitted item.
        on_done: Called once with the item and its result.
    """

    __slots__ = (
        *("accepted", "deadline", "entered", "holder", "index", "on_done", "outcome"),
        *("source", "stage", "timer", "value"),
    )

    def __init__(
        self,
        index: int,
        value: Any,
        deadline: float | None,
        source: MapState | None,
        on_done: Callable[[Item, Result], None],
    ) -> None:
        self.index = index
        self.value = value
        self.deadline = deadline
        self.source = source
        self.on_done = on_done
        self.accepted = 0.0
        self.entered = 0.0
        self.stage = 0
        self.holder: Holder | None = None
        self.outcome: Outcome | None = None
        self.timer: asyncio.TimerHandle | None = None
