"""The way of a call through the open tapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT
from ember_ml.autodiff.quick import QuickLog
from ember_ml.autodiff.values import Values

if TYPE_CHECKING:
    from ember_ml.autodiff.tape import GradientTape


def call(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tapes: tuple[GradientTape, ...]
) -> Any:
    """Compute a call, and write it on those of the tapes that track an operand."""
    operands = [value for value in args if isinstance(value, EmberTensor)]
    if len(operands) < len(args) or kwargs:
        operands += _hidden(args, kwargs)
    logs = [log for tape in tapes if (log := tape.log_of(operands)) is not None]
    if not logs:
        return op.plain(*args, **kwargs)
    if op.key in CONSTANT:
        with recording.only():
            return op.plain(*args, **kwargs)
    backend = logs[-1].backend
    for x in operands:
        if x._backend != backend:
            raise ArgumentTypeError(
                f"{op.key}: a tape records a tensor of the {backend} backend, which meets one of "
                f"{x._backend}; gradients do not cross backends: move one before the tape"
            )
    out = logs[-1].execute(op, args, kwargs, logs)
    for tape in tapes:
        if tape.causal is not None:
            tape.causal.observe(op, args, kwargs, out)
    return out


def _hidden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[EmberTensor]:
    """The tensors in sequences and in keyword arguments."""
    found = [x for x in kwargs.values() if isinstance(x, EmberTensor)]
    for value in args:
        if type(value) is list or type(value) is tuple:
            found += [part for part in value if isinstance(part, EmberTensor)]
    return found


class Scope:
    """The least of a tape: the ops on the tensors given, on one backend, while it is entered.

    The tensors are aliases of those given, so that one tensor given twice is two sources. It can be
    asked for one gradient, or for any number if it is persistent.
    """

    causal = None
    call = staticmethod(call)

    def __init__(self, tensors: Values, persistent: bool = False) -> None:
        self._log = make_log(tensors[0]._backend)
        self._log.rebinds = False
        self._log.retains = persistent
        self.quick = self._log if isinstance(self._log, QuickLog) else None
        self.sources = [ops.gradients.alias(x) for x in tensors]

    def __enter__(self) -> Self:
        recording.push(self)
        for x in self.sources:
            self._log.watch(x)
        return self

    def __exit__(self, *error: object) -> None:
        recording.remove(self)

    def log(self, backend: str) -> Any:
        """What was written down on a backend; None if nothing."""
        return self._log if backend == self._log.backend else None

    def log_of(self, operands: Values) -> Any:
        """The log, if it tracks one of the operands."""
        values = self._log.values
        return self._log if any(id(x._data) in values for x in operands) else None

    def gradient(self, targets: Values, cotangents: Values) -> Values:
        """The gradients of the sources; zeros where no path leads to a target."""
        found = self._log.gradient(targets, self.sources, cotangents)
        return [
            ops.zeros_like(x) if g is None else g for g, x in zip(found, self.sources, strict=True)
        ]


def make_log(backend: str) -> Any:
    """A new log of the kind that suits the backend."""
    return _kind_of_log(backend)(backend)


@functools.cache
def _kind_of_log(backend: str) -> Callable[[str], Any]:
    from ember_ml.autodiff import graph, replay, rules, sweep

    engines = {"graph": graph.GraphLog, "replay": replay.ReplayLog, "rules": sweep.SweepLog}
    engine = runtime.load(backend).autodiff.ENGINE
    if engine == "rules":
        rules.load()
    return engines[engine]
