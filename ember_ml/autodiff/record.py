"""The way of a call through the open tapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core import recording, runtime
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT

if TYPE_CHECKING:
    from ember_ml.autodiff.tape import GradientTape


def call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a call, and write it on this thread's tapes that track an operand."""
    tapes: tuple[GradientTape, ...] = recording.current()
    operands = [value for value in args if isinstance(value, EmberTensor)]
    if len(operands) < len(args) or kwargs:
        operands += _hidden(args, kwargs)
    logs = [log for tape in tapes if (log := tape.log_of(operands)) is not None]
    if not logs or op.key in CONSTANT:
        return op.plain(*args, **kwargs)
    backend = logs[-1].backend
    for x in operands:
        if x._backend is not backend and x._backend != backend:
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


def make_log(backend: str) -> Any:
    """A new log of the kind that suits the backend."""
    from ember_ml.autodiff import graph, replay, sweep

    engines = {"graph": graph.GraphLog, "replay": replay.ReplayLog, "rules": sweep.log_for}
    return engines[runtime.load(backend).autodiff.ENGINE](backend)
