"""Record of ops with their place, time and causes."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.numbers import count
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml._core.types import Tree
from ember_ml.autodiff.causal.events import Causal, Event, Position, Spatial, Temporal
from ember_ml.autodiff.causal.modules import ModulePaths
from ember_ml.autodiff.log import Args, KwArgs, Recordable, Result
from ember_ml.autodiff.program import Inputs, Step
from ember_ml.autodiff.values import snapshot


class OperationRecord:
    """Record of every op on a tape.

    Args:
        max_events: Maximum number of events; the oldest are dropped. Default: no limit.

    Attributes:
        events: The recorded events, the oldest first.
        recording: Whether new events are recorded.
        paths: Names of the modules that are running.
    """

    def __init__(self, max_events: int | None = None) -> None:
        if max_events is not None:
            max_events = count("CausalContext", "max_events", max_events, least=1)
        self.events: deque[Event] = deque(maxlen=max_events)
        self.recording = True
        self.paths = ModulePaths()
        self.clear()

    def clear(self) -> None:
        """Discard all events, names and positions."""
        self.events.clear()
        self._ticks = 0
        self._start = time.perf_counter()
        self._names: dict[int, str] = {}
        self._positions: dict[int, Position] = {}
        self._alive: dict[int, Tensor] = {}
        self._producers: dict[int, Event] = {}
        self._uses: Counter[int] = Counter()

    def start_recording(self) -> None:
        """Resume the recording."""
        self.recording = True

    def stop_recording(self) -> None:
        """Pause the recording."""
        self.recording = False

    def register_tensor(
        self, tensor: Tensor, name: str = "", position: Sequence[float] | None = None
    ) -> None:
        """Register a tensor as a named source.

        Args:
            tensor: The source.
            name: Its name. Default: a number.
            position: Its coordinates, for example those of a neuron.
        """
        if not isinstance(tensor, EmberTensor):
            raise ArgumentTypeError(
                f"register_tensor: expected a tensor, not {type(tensor).__name__}"
            )
        key = self._identify(tensor)
        self._names[key] = name or f"tensor {len(self._names)}"
        if position is not None:
            self._positions[key] = tuple(float(part) for part in position)

    def register_operation(
        self, operation: str, inputs: Tree[Tensor], outputs: Tree[Tensor]
    ) -> Event | None:
        """Record an operation that the tape does not see.

        Args:
            operation: Name of the operation.
            inputs: Its operands.
            outputs: Its results.

        Returns:
            The event; None while the recording is paused.
        """
        operands, results = tree.leaves_of(inputs), tree.leaves_of(outputs)
        return self._record(operation, operands, results, None) if self.recording else None

    def observe(self, op: Recordable, args: Args, kwargs: KwArgs, out: Result) -> None:
        """Record a call, unless its result was recorded by a call inside it."""
        results = [x for x in tree.leaves_of(out) if isinstance(x, EmberTensor)]
        if not self.recording or not results or id(results[0]._data) in self._producers:
            return
        saved = tree.map_leaves(_snapshot, list(args))
        operands = [x for x in tree.leaves_of(saved) if isinstance(x, EmberTensor)]
        single = isinstance(out, EmberTensor)
        outs = tuple(map(_snapshot, (out,) if isinstance(out, EmberTensor) else out))
        inputs: Inputs = [(0, None, x) for x in operands]
        name = op.key if isinstance(op.key, str) else op.name
        self._record(name, operands, results, Step(op, saved, kwargs, inputs, outs, single))

    def _record(
        self, operation: str, operands: list[Tensor], results: list[Tensor], step: Step | None
    ) -> Event:
        keys = tuple(self._identify(x) for x in operands)
        result_keys = tuple(self._identify(x) for x in results)
        event = Event(
            operation,
            tuple(x.shape for x in results),
            self._spatial(keys, result_keys),
            self._temporal(keys),
            self._causal(keys),
            keys,
            result_keys,
            step,
            self.paths.current,
        )
        if len(self.events) == self.events.maxlen:
            self._forget(self.events[0])
        self.events.append(event)
        self._uses.update(keys)
        self._ticks += 1
        self._producers.update(dict.fromkeys(result_keys, event))
        return event

    def _identify(self, x: Tensor) -> int:
        """Return the identity of a value: the id of its array, which stays alive."""
        self._alive.setdefault(id(x._data), snapshot(x))
        return id(x._data)

    def _forget(self, event: Event) -> None:
        for key in event.results:
            self._producers.pop(key, None)
            self._positions.pop(key, None)
        self._uses.subtract(event.values)
        for key in (*event.values, *event.results):
            if self._uses[key] <= 0:
                del self._uses[key]
                if key not in self._producers and key not in self._names:
                    self._alive.pop(key, None)

    def _spatial(self, keys: tuple[int, ...], result_keys: tuple[int, ...]) -> Spatial:
        positions = tuple(self._positions.get(key) for key in keys)
        known = [position for position in positions if position is not None]
        if not known:
            return Spatial(positions, None, 0.0)
        if len({len(position) for position in known}) > 1:
            raise ArgumentError(f"positions must have the same number of dimensions, not {known}")
        mean = tuple(sum(axis) / len(known) for axis in zip(*known, strict=True))
        self._positions.update(dict.fromkeys(result_keys, mean))
        return Spatial(positions, mean, max(math.dist(position, mean) for position in known))

    def _temporal(self, keys: tuple[int, ...]) -> Temporal:
        producers = [self._producers.get(key) for key in keys]
        depth = 1 + max((producer.temporal.depth for producer in producers if producer), default=0)
        delays = tuple(
            None if producer is None else self._ticks - producer.tick for producer in producers
        )
        return Temporal(self._ticks, time.perf_counter() - self._start, depth, delays)

    def _causal(self, keys: tuple[int, ...]) -> Causal:
        producers = [self._producers.get(key) for key in keys]
        sources = {self._names[key] for key in keys if key in self._names}
        sources.update(
            name for producer in producers if producer for name in producer.causal.sources
        )
        return Causal(
            tuple(None if producer is None else producer.tick for producer in producers),
            frozenset(sources),
        )

    def place_of(self, of: Tensor | Event) -> Position:
        """Return the position of a tensor or an op."""
        if isinstance(of, Event):
            position = of.spatial.position
        else:
            position = self._positions.get(id(of._data))
        if position is None:
            raise ArgumentError(
                "this tensor or op has no position; set those of its sources with "
                "register_tensor(tensor, name, position)"
            )
        return position

    def event_of(self, tensor: Tensor) -> Event | None:
        """Return the event that computed a tensor; None if it was not recorded or was dropped."""
        return self._producers.get(id(tensor._data))


def _snapshot(x: Any) -> Any:
    return snapshot(x) if isinstance(x, EmberTensor) else x
