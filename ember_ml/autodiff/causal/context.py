"""The causal context of a tape: a record of ops that can be asked about."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ember_ml._core import recording, tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.autodiff.causal.events import Causal, Event, Position, Spatial, Temporal
from ember_ml.autodiff.extraction import extract
from ember_ml.autodiff.program import Inputs, Step
from ember_ml.autodiff.values import snapshot


class CausalContext:
    """Every op that a tape records, with its place in space and time, and its causes.

    A tape made with `causal=True` fills it: `tape.causal`. By hand, `start_recording` and
    `register_operation` do.

    Args:
        max_events: how many events it holds; the oldest give way. None for all.

    Example:
        >>> x = tensor.array(2.0)
        >>> with GradientTape(causal=True) as tape:
        ...     tape.watch(x)
        ...     tape.causal.register_tensor(x, name="x")
        ...     y = ops.exp(x * x)
        >>> [event.operation for event in tape.causal.ancestors(y)]
        ['exponential.exp', 'elementwise.multiply']
    """

    def __init__(self, max_events: int | None = None) -> None:
        if max_events is not None and max_events < 1:
            raise ArgumentError(f"CausalContext: max_events must be 1 or more, not {max_events}")
        self.events: deque[Event] = deque(maxlen=max_events)
        self.recording = True
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.events.clear()
        self._ticks = 0
        self._start = time.perf_counter()
        self._names: dict[int, str] = {}
        self._positions: dict[int, Position] = {}
        self._kept: dict[int, Tensor] = {}
        self._makers: dict[int, Event] = {}
        self._uses: Counter[int] = Counter()

    def start_recording(self) -> None:
        """Go on recording."""
        self.recording = True

    def stop_recording(self) -> None:
        """Leave what follows out."""
        self.recording = False

    def register_tensor(
        self, tensor: Tensor, name: str = "", position: Sequence[float] | None = None
    ) -> None:
        """Name a tensor as a source, and say where it is: its neuron's coordinates, say."""
        if not isinstance(tensor, EmberTensor):
            raise ArgumentTypeError(f"register_tensor: not a tensor: {type(tensor).__name__}")
        key = self._keep(tensor)
        self._names[key] = name or f"tensor {len(self._names)}"
        if position is not None:
            self._positions[key] = tuple(float(part) for part in position)

    def register_operation(self, operation: str, inputs: Any, outputs: Any) -> Event | None:
        """Enter an operation on tensors that the tape does not see by itself."""
        operands, results = tree.leaves_of(inputs), tree.leaves_of(outputs)
        return self._enter(operation, operands, results, None) if self.recording else None

    def observe(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Enter an op's call; one whose results were entered on the way is passed over."""
        results = [x for x in tree.leaves_of(out) if isinstance(x, EmberTensor)]
        if not self.recording or not results or id(results[0]._data) in self._makers:
            return
        saved = tree.map_leaves(_snapshot, list(args))
        operands = [x for x in tree.leaves_of(saved) if isinstance(x, EmberTensor)]
        single = isinstance(out, EmberTensor)
        outs = tuple(map(_snapshot, (out,) if single else out))
        inputs: Inputs = [(0, None, x) for x in operands]
        name = op.key if isinstance(op.key, str) else op.name
        self._enter(name, operands, results, Step(op, saved, kwargs, inputs, outs, single))

    def _enter(
        self, operation: str, operands: list[Any], results: list[Any], step: Step | None
    ) -> Event:
        keys = tuple(self._keep(x) for x in operands)
        made = tuple(self._keep(x) for x in results)
        event = Event(
            operation,
            tuple(x.shape for x in results),
            self._spatial_context(keys, made),
            self._temporal_context(keys),
            self._causal_context(keys),
            keys,
            made,
            step,
        )
        if len(self.events) == self.events.maxlen:
            self._forget(self.events[0])
        self.events.append(event)
        self._uses.update(keys)
        self._ticks += 1
        self._makers.update(dict.fromkeys(made, event))
        return event

    def _keep(self, x: Tensor) -> int:
        """What a value is known by: its array's identity, which is kept alive."""
        self._kept.setdefault(id(x._data), snapshot(x))
        return id(x._data)

    def _forget(self, event: Event) -> None:
        for key in event.made:
            self._makers.pop(key, None)
            self._positions.pop(key, None)
        self._uses.subtract(event.values)
        for key in (*event.values, *event.made):
            if self._uses[key] <= 0:
                del self._uses[key]
                if key not in self._makers and key not in self._names:
                    self._kept.pop(key, None)

    def _spatial_context(self, keys: tuple[int, ...], made: tuple[int, ...]) -> Spatial:
        places = tuple(self._positions.get(key) for key in keys)
        known = [place for place in places if place is not None]
        if not known:
            return Spatial(places, None, 0.0)
        if len({len(place) for place in known}) > 1:
            raise ArgumentError(f"positions of different dimensions meet: {known}")
        middle = tuple(sum(axis) / len(known) for axis in zip(*known, strict=True))
        self._positions.update(dict.fromkeys(made, middle))
        return Spatial(places, middle, max(math.dist(place, middle) for place in known))

    def _temporal_context(self, keys: tuple[int, ...]) -> Temporal:
        makers = [self._makers.get(key) for key in keys]
        depth = 1 + max((maker.temporal.depth for maker in makers if maker), default=0)
        delays = tuple(None if maker is None else self._ticks - maker.tick for maker in makers)
        return Temporal(self._ticks, time.perf_counter() - self._start, depth, delays)

    def _causal_context(self, keys: tuple[int, ...]) -> Causal:
        makers = [self._makers.get(key) for key in keys]
        sources = {self._names[key] for key in keys if key in self._names}
        sources.update(name for maker in makers if maker for name in maker.causal.sources)
        return Causal(
            tuple(None if maker is None else maker.tick for maker in makers), frozenset(sources)
        )

    def event_of(self, tensor: Tensor) -> Event | None:
        """The op that made a tensor; None for one from outside, or forgotten."""
        return self._makers.get(id(tensor._data))

    def ancestors(self, of: Tensor | Event, depth: int | None = None) -> list[Event]:
        """The ops that led to a tensor or an op, itself first, the latest before the earlier.

        `depth` is how many steps to go back; None for all the way.
        """
        by_tick: dict[int | None, Event] = {event.tick: event for event in self.events}
        return self._closure(
            of, depth, lambda event: (by_tick.get(tick) for tick in event.causal.causes), True
        )

    def descendants(self, of: Tensor | Event, depth: int | None = None) -> list[Event]:
        """The ops that followed from a tensor or an op, the earliest first."""
        readers: dict[int, list[Event]] = {}
        for event in self.events:
            for key in event.values:
                readers.setdefault(key, []).append(event)
        if isinstance(of, EmberTensor) and self.event_of(of) is None:
            found: dict[int, Event] = {}
            for first in readers.get(id(of._data), []):
                rest = None if depth is None else depth - 1
                for event in (first, *self.descendants(first, rest)):
                    found[event.tick] = event
            return [found[tick] for tick in sorted(found)]
        closure = self._closure(
            of,
            depth,
            lambda event: (one for key in event.made for one in readers.get(key, [])),
            False,
        )
        return closure[1:]

    def _closure(
        self,
        of: Tensor | Event,
        depth: int | None,
        neighbours: Callable[[Event], Iterator[Event | None]],
        backward: bool,
    ) -> list[Event]:
        start = self.event_of(of) if isinstance(of, EmberTensor) else of
        if start is None:
            return []
        found, frontier = {start.tick: start}, [start]
        while frontier and (depth is None or depth > 0):
            depth = None if depth is None else depth - 1
            reached = [one for event in frontier for one in neighbours(event) if one is not None]
            frontier = [one for one in reached if one.tick not in found]
            found.update((one.tick, one) for one in frontier)
        return [found[tick] for tick in sorted(found, reverse=backward)]

    def reconstruct_graph(self, target: Tensor, sources: Any, *values: Tensor) -> Any:
        """The target computed again from other values of the sources, by the recorded ops.

        Without values it gives a function of them. All else that the ops read stays as it was.
        """
        given = tree.leaves_of(sources)
        events = [event for event in self.ancestors(target)[::-1] if event.step is not None]
        if not events:
            raise ArgumentError(
                "reconstruct_graph: the target was not made by a recorded op, or it was forgotten"
            )
        steps = [(event.tick, event.step) for event in events]
        program, _, constants = extract(steps, given, [target], {})

        def function(*inputs: Tensor) -> Tensor:
            if len(inputs) != len(given):
                raise ArgumentError(f"{len(inputs)} values for {len(given)} sources")
            return program.run(list(inputs), constants, recorded=bool(recording.tapes()))[0]

        return function(*values) if values else function

    def to_networkx(self) -> Any:
        """The graph of ops and registered tensors for networkx, which it imports."""
        from ember_ml.autodiff.causal.drawing import to_networkx

        return to_networkx(self)

    def draw(self, path: str | None = None, ax: Any = None) -> Any:
        """A drawing of the graph, ops in columns by depth; saved if a path is given.

        Gives matplotlib's axes.
        """
        from ember_ml.autodiff.causal.drawing import draw

        return draw(self, path, ax)


def _snapshot(x: Any) -> Any:
    return snapshot(x) if isinstance(x, EmberTensor) else x
