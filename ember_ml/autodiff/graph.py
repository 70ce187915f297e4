"""Gradients on a framework that keeps the graph itself."""

from __future__ import annotations

import weakref
from typing import Any, cast

from ember_ml._core import recording, runtime
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.values import Values
from ember_ml.backend.interface import GraphAutodiff

_live: weakref.WeakSet[GraphLog] = weakref.WeakSet()


class GraphLog:
    """What a tape knows of a backend with a graph of its own.

    A tensor of ours never carries the graph: the log keeps, for each tracked value, the native
    array that does. So nothing is recorded outside the tape.

    Attributes:
        values: id of a native array -> (the array, the same value in the graph).
        retains: whether the graph outlasts a gradient, to be asked for another.
    """

    retains = False

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.values: dict[int, tuple[Any, Any]] = {}
        self._native = cast(GraphAutodiff, runtime.load(backend).autodiff)
        self._native.keep_graph()
        _live.add(self)

    def watch(self, x: EmberTensor) -> None:
        """Track a tensor from here on."""
        if id(x._data) in self.values:
            return
        data, inside = x._data, False
        for tape in recording.tapes():
            log = tape.log(self.backend)
            inside = inside or log is self
            if isinstance(log, GraphLog) and id(x._data) in log.values:
                data = log.values[id(x._data)][1]
                if inside:  # an inner tape was first: the outer one takes its place in the graph
                    self.values[id(x._data)] = x._data, data
                    return
        self.values[id(x._data)] = x._data, self._native.leaf(data)

    def execute(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], logs: list[GraphLog]
    ) -> Any:
        """Compute the call on the values in the graph, and keep the results."""
        wanted = [self._in_graph(value, logs) for value in args]
        named = {name: self._in_graph(value, logs) for name, value in kwargs.items()}
        out = op.plain(*wanted, **named)
        if isinstance(out, EmberTensor):
            return self._keep(out, args, wanted, logs)
        kept = [self._keep(x, args, wanted, logs) if isinstance(x, EmberTensor) else x for x in out]
        kind: Any = type(out)
        return kind(*kept) if hasattr(kind, "_fields") else kind(kept)

    def _is_shared(self, targets: Values) -> bool:
        """Whether another tape could be asked for the same graph."""
        others = [log for log in _live if log is not self]
        return any(id(x._data) in log.values for log in others for x in targets)

    def _in_graph(self, value: Any, logs: list[GraphLog]) -> Any:
        if isinstance(value, EmberTensor):
            key = id(value._data)
            for log in reversed(logs):
                known = log.values.get(key)
                if known is not None:
                    return wrap(known[1], self.backend)
            return value
        if type(value) is list or type(value) is tuple:
            return type(value)([self._in_graph(part, logs) for part in value])
        return value

    def _keep(
        self, x: EmberTensor, args: tuple[Any, ...], wanted: list[Any], logs: list[GraphLog]
    ) -> EmberTensor:
        graph = x._data
        if not self._native.has_graph(graph):
            return x
        for given, used in zip(args, wanted, strict=True):
            if isinstance(used, EmberTensor) and used._data is graph:
                return given  # the op gave its operand back
        if not self._native.is_nested():  # else the graph is somebody else's as well
            x._data = self._native.detach(graph)
        for log in logs:
            log.values[id(x._data)] = x._data, graph
        return x

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target."""
        return self._pull(targets, sources, cotangents, batched=False)

    def rows(
        self, targets: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients for each of a batch of cotangents, stacked."""
        return self._pull(targets, sources, cotangents, batched=True)

    def _pull(
        self, targets: Values, sources: Values, cotangents: Values, batched: bool
    ) -> list[EmberTensor | None]:
        tapes = recording.tapes()
        logs = [log for tape in tapes if (log := tape.log(self.backend)) is not None]
        pairs = [
            (self.values[id(x._data)][1], self._in_graph(g, logs)._data)
            for x, g in zip(targets, cotangents, strict=True)
            if id(x._data) in self.values
        ]
        if not pairs:
            return [None] * len(sources)
        found = self._native.gradient(
            [one for one, _ in pairs],
            [self.values[id(x._data)][1] for x in sources],
            [g for _, g in pairs],
            self.retains or batched or self._is_shared(targets),
            create=bool(tapes) or self._native.is_nested(),
            batched=batched,
        )
        return [
            None if g is None else self._keep(wrap(g, self.backend), (), [], logs) for g in found
        ]
