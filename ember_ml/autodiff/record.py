"""Recording of calls on the open tapes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Self, cast

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT
from ember_ml.autodiff.log import Args, KwArgs, Log, Recordable, Result
from ember_ml.autodiff.program import ProgramLog
from ember_ml.autodiff.values import Values

if TYPE_CHECKING:
    from ember_ml.autodiff.tape import GradientTape
    from ember_ml.backend.interface import GraphAutodiff


def call(
    op: Recordable, args: Args, kwargs: KwArgs, tapes: tuple[GradientTape | Scope, ...]
) -> Result:
    """Compute a call, and record it on the tapes that track an operand."""
    operands = [value for value in args if isinstance(value, EmberTensor)]
    if len(operands) < len(args) or kwargs:
        operands += _nested_operands(args, kwargs)
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
                f"{op.key}: a tape records a tensor of the {backend} backend, but another operand "
                f"is on {x._backend}; gradients do not cross backends: call to_backend before the "
                "tape records"
            )
    out = logs[-1].execute(op, args, kwargs, logs)
    for tape in tapes:
        if tape.causal is not None:
            tape.causal.observe(op, args, kwargs, out)
    return out


def _nested_operands(args: Args, kwargs: KwArgs) -> Values:
    """Return the tensors in sequences and in keyword arguments."""
    operands = [x for x in kwargs.values() if isinstance(x, EmberTensor)]
    for value in args:
        if type(value) is list or type(value) is tuple:
            operands += [part for part in value if isinstance(part, EmberTensor)]
    return operands


class Scope:
    """Minimal tape of the transforms: records the ops on the given tensors, on one backend.

    Args:
        tensors: Tensors to differentiate with respect to.
        persistent: Whether gradients may be computed more than once.

    Attributes:
        sources: Aliases of the tensors, so that a tensor passed twice is two sources.
    """

    causal = None
    call = staticmethod(call)

    def __init__(self, tensors: Values, persistent: bool = False) -> None:
        self._log = create_log(tensors[0]._backend, nested=True)
        self._log.rebinds = False
        self._log.retains = persistent
        self.quick = self._log if isinstance(self._log, ProgramLog) else None
        self.sources = [ops.gradients.alias(x) for x in tensors]

    def __enter__(self) -> Self:
        recording.push(self)
        for x in self.sources:
            self._log.watch(x)
        return self

    def __exit__(self, *exception: object) -> None:
        recording.remove(self)

    def log(self, backend: str) -> Log | None:
        """Return the log if it is of this backend, else None."""
        return self._log if backend == self._log.backend else None

    def log_of(self, operands: Values) -> Log | None:
        """Return the log if it tracks an operand, else None."""
        values = self._log.values
        return self._log if any(id(x._data) in values for x in operands) else None

    def gradient(self, targets: Values, cotangents: Values) -> Values:
        """Return the gradients of the sources, zeros where no path leads to a target."""
        grads = self._log.gradient(targets, self.sources, cotangents)
        return [
            ops.zeros_like(x) if g is None else g for g, x in zip(grads, self.sources, strict=True)
        ]


def create_log(backend: str, nested: bool = False) -> Log:
    """Return a new log for a backend, by its autodiff engine.

    In a transform where arrays cannot carry a graph, the VJP rules are used: their ops take part in
    the transform like all others.

    Args:
        backend: Name of the backend.
        nested: Whether other transforms may differentiate or batch the gradients. The framework's
            `vjp` is used for the outermost gradient only, so a replay becomes a sweep.
    """
    native = runtime.load(backend).autodiff
    engine: str = native.ENGINE
    if engine == "graph":
        by_rules = cast("GraphAutodiff", native).is_transforming()
    else:
        by_rules = nested or engine == "rules"
    return _log_class("rules" if by_rules else engine)(backend)


@functools.cache
def _log_class(engine: str) -> type[Log]:
    from ember_ml.autodiff import graph, replay, rules, sweep

    if engine == "graph":
        return graph.GraphLog
    rules.load()
    return replay.ReplayLog if engine == "replay" else sweep.SweepLog
