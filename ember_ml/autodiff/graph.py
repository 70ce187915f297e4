"""Gradients on a framework that records a graph itself."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, cast

from ember_ml._core import recording, runtime
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.log import Args, KwArgs, Log, Recordable, Result
from ember_ml.autodiff.program import ProgramLog
from ember_ml.autodiff.values import Values

if TYPE_CHECKING:
    from ember_ml.backend.interface import GraphAutodiff

_live: weakref.WeakSet[GraphLog] = weakref.WeakSet()


class GraphLog(Log):
    """Log on a backend whose framework records the graph.

    An Ember tensor never carries the graph. The log stores, for each tracked value, the native
    array that does, so nothing is recorded outside the tape.

    Attributes:
        values: Id of a native array -> (the array, the same value in the graph).
    """

    values: dict[int, tuple[NativeArray, NativeArray]]

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self.values = {}
        if any(isinstance(tape.log(backend), ProgramLog) for tape in recording.tapes()):
            raise recording.NestedTransform  # a checkpoint captures the program
        self._native = cast("GraphAutodiff", runtime.load(backend).autodiff)
        self._native.keep_graph()
        _live.add(self)

    def watch(self, x: Tensor) -> None:
        """Track a tensor from here on."""
        if id(x._data) in self.values:
            return
        data, inside = x._data, False
        for tape in recording.tapes():
            log = tape.log(self.backend)
            inside = inside or log is self
            if isinstance(log, GraphLog) and id(x._data) in log.values:
                data = log.values[id(x._data)][1]
                if inside:  # an inner tape watched it first: share its node of the graph
                    self.values[id(x._data)] = x._data, data
                    return
        self.values[id(x._data)] = x._data, self._native.leaf(data)

    def execute(self, op: Recordable, args: Args, kwargs: KwArgs, logs: Sequence[Self]) -> Result:
        """Compute the call on the values in the graph, and store the results."""
        operands = [self._in_graph(value, logs) for value in args]
        named = {name: self._in_graph(value, logs) for name, value in kwargs.items()}
        out = op.plain(*operands, **named)
        if isinstance(out, EmberTensor):
            return self._store(out, args, operands, logs)
        results = [
            self._store(x, args, operands, logs) if isinstance(x, EmberTensor) else x for x in out
        ]
        cls = type(out)
        return cls(*results) if hasattr(cls, "_fields") else cls(results)

    def _is_shared(self, targets: Values) -> bool:
        """Return whether another tape could differentiate the same graph."""
        others = [log for log in _live if log is not self]
        return any(id(x._data) in log.values for log in others for x in targets)

    def _in_graph(self, value: object, logs: Sequence[GraphLog]) -> object:
        """Return an argument with tracked tensors replaced by their values in the graph."""
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

    def _store(
        self,
        x: Tensor,
        args: Sequence[object],
        operands: Sequence[object],
        logs: Sequence[GraphLog],
    ) -> Tensor:
        """Return a result without its graph, which the logs store."""
        graph = x._data
        if not self._native.has_graph(graph):
            return x
        for given, used in zip(args, operands, strict=True):
            if isinstance(given, EmberTensor) and cast(Tensor, used)._data is graph:
                return given  # the op returned its operand
        if not self._native.is_nested():  # an outer gradient or transform needs the graph
            x._data = self._native.detach(graph)
        for log in logs:
            log.values[id(x._data)] = x._data, graph
        return x

    def gradient(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients of the sources, None where no path leads to a target."""
        return self._backward(targets, sources, cotangents, batched=False)

    def rows(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients for each of a batch of cotangents, stacked along axis 0."""
        return self._backward(targets, sources, cotangents, batched=True)

    def _backward(
        self, targets: Values, sources: Values, cotangents: Values, batched: bool
    ) -> list[Tensor | None]:
        tapes = recording.tapes()
        logs = [log for tape in tapes if (log := tape.log(self.backend)) is not None]
        pairs = [
            (self.values[id(x._data)][1], cast(Tensor, self._in_graph(g, logs))._data)
            for x, g in zip(targets, cotangents, strict=True)
            if id(x._data) in self.values
        ]
        if not pairs:
            return [None] * len(sources)
        grads = self._native.gradient(
            [output for output, _ in pairs],
            [self.values[id(x._data)][1] for x in sources],
            [g for _, g in pairs],
            self.retains or batched or self._is_shared(targets),
            create=bool(tapes) or self._native.is_nested(),
            batched=batched,
        )
        return [
            None if g is None else self._store(wrap(g, self.backend), (), (), logs) for g in grads
        ]
