"""Measured calls, and the modules and ops that they belong to."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Literal, NamedTuple, TypeAlias

Phase: TypeAlias = Literal["forward", "backward"]
OUTSIDE = -1
"""Number of the layer of calls outside of the model, such as calls of the loss."""
MAX_EVENTS = 200_000
"""Maximum number of calls and modules in a timeline; totals count all."""


class Key(NamedTuple):
    """What a measured time belongs to."""

    op: str
    """Key of the op of the forward pass, such as "nn.projection.linear"."""
    layer: int
    """Number of the module that called it, or `OUTSIDE`."""
    phase: Phase


class Event(NamedTuple):
    """A part of the timeline; times are seconds of `time.perf_counter`."""

    name: str
    kind: Literal["op", "module", "part"]
    phase: str
    layer: int
    start: float
    seconds: float
    replayed: bool = False
    """Whether the call was measured separately from the computation."""


class Total:
    """Sum of the times of calls."""

    __slots__ = ("calls", "flops", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.flops = 0.0


class Events:
    """Measured calls of one thread.

    Times exclude the calls inside: a native function or a backward pass that calls other ops counts
    without them.

    Args:
        dispatches_backward: Whether the calls of the backward pass are ops of Ember.

    Attributes:
        totals: Sum of the times by op, module and phase.
        timeline: The calls and modules in the order in which they ended.
        overhead: Seconds that the measurement itself has taken.
        layer: Number of the module that is running.
        op: Op whose backward pass is running, if it is known.
        differentiates: Whether a backward pass is running.
        modules: Seconds of the forward pass of each module, with the modules inside.
        parts: Seconds of the named parts of a step, such as "update".
        replays: Whether backward passes were measured apart from the computation.
    """

    def __init__(self, *, dispatches_backward: bool = False) -> None:
        self.totals: defaultdict[Key, Total] = defaultdict(Total)
        self.timeline: list[Event] = []
        self.dropped = 0
        self.overhead = 0.0
        self.layer = OUTSIDE
        self.op: str | None = None
        self.differentiates = False
        self.modules: defaultdict[int, float] = defaultdict(float)
        self.parts: defaultdict[str, float] = defaultdict(float)
        self.replays = False
        self.dispatches_backward = dispatches_backward
        self._inner = 0.0

    @property
    def is_forward(self) -> bool:
        """Whether calls belong to a forward pass, and not to its recomputation."""
        return self.op is None and not self.differentiates

    def begin(self) -> tuple[float, float]:
        """Start to measure a call; return what `end` needs."""
        outer, self._inner = self._inner, 0.0
        return time.perf_counter(), outer

    def end(self, begun: tuple[float, float], name: str, key: Key, flops: float = 0.0) -> float:
        """Add a call, and return the moment at which it ended.

        Args:
            begun: Result of `begin`.
            name: Name of the call in the timeline.
            key: What the time belongs to.
            flops: Operations of the call.
        """
        ended = time.perf_counter()
        start, outer = begun
        seconds = ended - start
        total = self.totals[key]
        total.calls += 1
        total.seconds += max(0.0, seconds - self._inner)
        total.flops += flops
        self._inner = outer + seconds
        if key.phase == "backward":
            name = f"{key.op} backward" + ("" if name == key.op else f": {name}")
        self.add(Event(name, "op", key.phase, key.layer, start, seconds))
        return ended

    def abandon(self, begun: tuple[float, float]) -> None:
        """Forget a call that raised an error.

        Args:
            begun: Result of `begin`.
        """
        self._inner += begun[1]

    def add(self, event: Event) -> None:
        """Add a part of the timeline, unless it is full."""
        if len(self.timeline) < MAX_EVENTS:
            self.timeline.append(event)
        else:
            self.dropped += 1

    def count_overhead(self, since: float) -> None:
        """Count the time since a moment as time of the measurement."""
        spent = time.perf_counter() - since
        self.overhead += spent
        self._inner += spent

    def native(self, phase: Phase | None = None) -> float:
        """Return the seconds of all calls, or of the calls of a phase."""
        return sum(
            total.seconds for key, total in self.totals.items() if phase in (None, key.phase)
        )


class Timer:
    """Receives the times of the backward pass of a call: `interface.BackwardTimer`."""

    __slots__ = ("_begun", "_events", "_key", "_outer")

    def __init__(self, events: Events, op: str, layer: int) -> None:
        self._events = events
        self._key = Key(op, layer, "backward")
        self._begun: tuple[float, float] = (0.0, 0.0)
        self._outer: tuple[str | None, int] = (None, OUTSIDE)

    def start(self) -> None:
        """Start to measure."""
        events = self._events
        self._outer = events.op, events.layer
        events.op, events.layer = self._key.op, self._key.layer
        self._begun = events.begin()

    def stop(self) -> None:
        """Add the time since `start`."""
        events = self._events
        ended = events.end(self._begun, self._key.op, self._key)
        events.op, events.layer = self._outer
        events.count_overhead(ended)

    def add(self, seconds: float) -> None:
        """Add a time that was measured separately from the backward pass."""
        events = self._events
        total = events.totals[self._key]
        total.calls += 1
        total.seconds += seconds
        op, layer, phase = self._key
        start = time.perf_counter() - seconds
        events.replays = True
        events.add(Event(f"{op} backward", "op", phase, layer, start, seconds, replayed=True))
