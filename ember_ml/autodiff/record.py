"""The way of a call through the open tapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ember_ml._core import recording, runtime
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT

if TYPE_CHECKING:
    from ember_ml.autodiff.tape import GradientTape


def call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a call, and write it on this thread's tapes that track an operand."""
    tapes: tuple[GradientTape, ...] = recording.tapes()
    operands = list(_operands(args, kwargs))
    logs = [log for tape in tapes if (log := tape.log_of(operands)) is not None]
    if not logs or op.key in CONSTANT:
        return op.plain(*args, **kwargs)
    out = logs[-1].execute(op, args, kwargs, logs)
    for tape in tapes:
        if tape.causal is not None:
            tape.causal.register_operation(op.key, operands, out)
    return out


def _operands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[EmberTensor]:
    for value in args:
        if isinstance(value, EmberTensor):
            yield value
        elif type(value) is list or type(value) is tuple:
            for part in value:
                if isinstance(part, EmberTensor):
                    yield part
    for value in kwargs.values():
        if isinstance(value, EmberTensor):
            yield value


def make_log(backend: str) -> Any:
    """A new log of the kind that suits the backend."""
    from ember_ml.autodiff import graph, replay, sweep

    engines = {"graph": graph.GraphLog, "replay": replay.ReplayLog, "rules": sweep.log_for}
    return engines[runtime.load(backend).autodiff.ENGINE](backend)
