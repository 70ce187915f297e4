"""Gradient checkpointing: less memory for more computation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ember_ml._core import recording
from ember_ml._core.tensor import Tensor, native_arrays, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.extraction import Procedure, Program, capture
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.transforms.arguments import (
    Arguments,
    Results,
    engine,
)
from ember_ml.autodiff.values import Values, is_differentiable

if TYPE_CHECKING:
    from ember_ml.backend.interface import Checkpoint

F = TypeVar("F", bound=Callable[..., Any])


def checkpoint(fn: F) -> F:
    """Return fn with gradient checkpointing.

    The backward pass computes the intermediate values of fn again instead of storing them.
    Gradients flow to the arguments and to the tensors that fn closes over. Random numbers are the
    same in both passes. A function that calls other transforms runs without checkpointing where
    the framework cannot compute it twice.

    Args:
        fn: Function of tensors and trees of tensors.

    Returns:
        A function with the arguments, result and gradient of fn.

    Example:
        >>> block = checkpoint(lambda x: ops.tanh(ops.exp(x)))
        >>> float(grad(block)(0.0)) == float(grad(lambda x: ops.tanh(ops.exp(x)))(0.0))
        True
    """

    @functools.wraps(fn)
    def call(*args: object, **kwargs: object) -> Any:
        given = Arguments("checkpoint", args, range(len(args)), needed=False)
        if not given.tensors:  # nothing to differentiate
            return fn(*args, **kwargs)
        native = engine(given.backend)
        results: Any = None
        returned = False

        def run(tensors: Values) -> Values:
            nonlocal results
            computed = Results(given.call(fn, tensors, kwargs))
            if not returned:  # the backward pass must not keep the graph of its own results
                results = computed
            return computed.tensors

        def unflatten(tensors: Values) -> Any:
            nonlocal results, returned
            whole = results.unflatten(tensors)
            results, returned = None, True
            return whole

        if not recording.tapes():
            if native.checkpoint is None:  # without a tape there is no gradient
                return fn(*args, **kwargs)
            if native.CHECKPOINT_SEES_CLOSURES:

                def function(*arrays: NativeArray) -> list[NativeArray]:
                    return native_arrays(run(wrap_all(arrays, given.backend)))

                outputs = native.checkpoint(function, native_arrays(given.tensors))
                return unflatten(wrap_all(outputs, given.backend))
        try:
            program, values, computed = capture(run, given.tensors, given.backend)
        except recording.NestedTransform:
            return fn(*args, **kwargs)
        return unflatten(_procedure(program, given.backend, computed)(values))

    return cast(F, call)


def _natively(native: Checkpoint, program: Program, values: Values, backend: str) -> Values:
    """Run the program in the framework's checkpoint, as a function of its differentiable inputs."""
    indices = [index for index, x in enumerate(values) if is_differentiable(x)]

    def function(*arrays: NativeArray) -> list[NativeArray]:
        return native_arrays(program.call(_replaced(values, indices, wrap_all(arrays, backend))))

    return wrap_all(native(function, native_arrays([values[index] for index in indices])), backend)


def _replaced(values: Values, indices: list[int], tensors: Values) -> Values:
    replaced = list(values)
    for index, x in zip(indices, tensors, strict=True):
        replaced[index] = x
    return replaced


def _procedure(program: Program, backend: str, results: Values) -> Procedure:
    """Return the program as one step on the tapes."""
    native = engine(backend).checkpoint
    computed: list[Values] = [results] if native is None else []

    def plain(values: Values) -> Values:
        if native is not None:
            return _natively(native, program, values, backend)
        return computed.pop() if computed else program.call(values)

    def rule(g: tuple[Tensor, ...], out: object, values: Values) -> tuple[list[Tensor | None]]:
        indices = [index for index, x in enumerate(values) if is_differentiable(x)]
        with Scope([values[index] for index in indices]) as scope:
            outs = program.call(_replaced(values, indices, scope.sources), recorded=True)
        grads = dict(zip(indices, scope.gradient(outs, list(g)), strict=True))
        return ([grads.get(index) for index in range(len(values))],)

    return Procedure("checkpoint", program.key, backend, plain, VJPRule(joint=rule))
