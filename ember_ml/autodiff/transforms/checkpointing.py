"""Memory for time: intermediate values computed again in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ember_ml._core import recording
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.capture import capture
from ember_ml.autodiff.extraction import Program
from ember_ml.autodiff.procedure import Procedure
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.transforms._arguments import (
    Arguments,
    Results,
    engine,
    natives,
    wrapped,
)
from ember_ml.autodiff.values import Values, is_differentiable


def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, which keeps no intermediate values for its gradient but computes them again.

    Gradients flow to its arguments and to the tensors it reads from elsewhere. Random numbers are
    those of the first run.

    Example:
        >>> block = checkpoint(lambda x: ops.tanh(ops.exp(x)))
        >>> float(grad(block)(0.0)) == float(grad(lambda x: ops.tanh(ops.exp(x)))(0.0))
        True
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = Arguments("checkpoint", args, range(len(args)), needed=False)
        if not given.tensors:  # nothing to come back to
            return fn(*args, **kwargs)
        native = engine(given.backend)
        results: Any = None

        def run(tensors: Values) -> Values:
            nonlocal results
            results = Results(given.call(fn, tensors, kwargs))
            return results.tensors

        if not recording.tapes():
            if native.checkpoint is None:  # no tape, no gradient
                return fn(*args, **kwargs)
            if native.CHECKPOINT_SEES_CLOSURES:

                def function(*arrays: Any) -> list[Any]:
                    return natives(run(wrapped(arrays, given.backend)))

                outputs = native.checkpoint(function, natives(given.tensors))
                return results.nest(wrapped(outputs, given.backend))
        program, values, found = capture(run, given.tensors, given.backend)
        return results.nest(_procedure(program, given.backend, found)(values))

    return call


def _natively(native: Any, program: Program, values: Values, backend: str) -> Values:
    """By the framework's own checkpoint: a function of the differentiable values."""
    count = len(program.sources)
    places = [at for at, x in enumerate(values) if is_differentiable(x)]

    def function(*arrays: Any) -> list[Any]:
        given = list(values)
        for at, x in zip(places, wrapped(arrays, backend), strict=True):
            given[at] = x
        return natives(program.run(given[:count], given[count:]))

    return wrapped(native(function, natives([values[at] for at in places])), backend)


def _procedure(program: Program, backend: str, results: Values) -> Procedure:
    """The program as one call on the tapes."""
    native = engine(backend).checkpoint
    count = len(program.sources)
    computed: list[Values] = [results] if native is None else []

    def plain(values: Values) -> Values:
        if native is not None:
            return _natively(native, program, values, backend)
        return computed.pop() if computed else program.run(values[:count], values[count:])

    def pull(g: tuple[EmberTensor, ...], out: Any, values: Values) -> tuple[list[Any]]:
        places = [at for at, x in enumerate(values) if is_differentiable(x)]
        with Scope([values[at] for at in places]) as scope:
            given = list(values)
            for at, x in zip(places, scope.sources, strict=True):
                given[at] = x
            outs = program.run(given[:count], given[count:], recorded=True)
        grads = dict(zip(places, scope.gradient(outs, list(g)), strict=True))
        return ([grads.get(at) for at in range(len(values))],)

    return Procedure("checkpoint", program.key, backend, plain, VJPRule(joint=pull))
