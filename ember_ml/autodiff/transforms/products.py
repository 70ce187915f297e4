"""Products of a function's Jacobian with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import recording
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.transforms._arguments import (
    Arguments,
    Results,
    engine,
    natives,
    wrapped,
)
from ember_ml.autodiff.values import Values


def vjp(fn: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """fn's result, and the function from a cotangent of it to the gradients of the primals.

    Example:
        >>> value, pull = vjp(lambda x, y: x * y, tensor.array(2.0), tensor.array(3.0))
        >>> [float(g) for g in pull(tensor.array(1.0))]
        [3.0, 2.0]
    """
    given = Arguments("vjp", primals, range(len(primals)))
    results, pull = _vjp(lambda tensors: given.call(fn, tensors, {}), given.tensors, given.backend)

    def gradients(cotangents: Any) -> tuple[Any, ...]:
        return given.nest(pull(results.pick("vjp", cotangents)))

    return results.nest(results.tensors), gradients


def _vjp(
    run: Callable[[Values], Any], tensors: Values, backend: str
) -> tuple[Results, Callable[[Values], Values]]:
    """The results of a function of tensors, and from cotangents of them to gradients."""
    native = engine(backend).vjp
    if native is None or recording.tapes():
        return _vjp_by_tape(run, tensors)
    results: Any = None

    def function(*arrays: Any) -> list[Any]:
        nonlocal results
        results = _with_tensors(Results(run(wrapped(arrays, backend))), "vjp")
        return natives(results.tensors)

    outputs, pull = native(function, natives(tensors))
    results.tensors = wrapped(outputs, backend)
    return results, lambda cotangents: wrapped(pull(natives(cotangents)), backend)


def _with_tensors(results: Results, name: str) -> Results:
    if not results.tensors:
        raise ArgumentTypeError(f"{name}: the function gives no floating tensor")
    return results


def _vjp_by_tape(
    run: Callable[[Values], Any], tensors: Values
) -> tuple[Results, Callable[[Values], Values]]:
    with Scope(tensors, persistent=True) as scope:
        results = _with_tensors(Results(run(scope.sources)), "vjp")
    return results, lambda cotangents: scope.gradient(results.tensors, cotangents)


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """fn's result, and its change along the tangents of the primals.

    Example:
        >>> value, change = jvp(lambda x: x**2, (tensor.array(3.0),), (tensor.array(1.0),))
        >>> float(value), float(change)
        (9.0, 6.0)
    """
    given = Arguments("jvp", primals, range(len(primals)))
    along = _tangents(given, primals, tangents)

    def run(values: Values) -> Any:
        return given.call(fn, values, {})

    results, changes = _jvp(run, given.tensors, along, given.backend)
    return results.nest(results.tensors), results.nest(changes)


def _tangents(given: Arguments, primals: Sequence[Any], tangents: Sequence[Any]) -> Values:
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: {len(tangents)} tangents for {len(primals)} primals")
    other = Arguments("jvp", tangents, range(len(tangents)))
    if not given.agrees(other):
        raise ArgumentError("jvp: the tangents must have the structure of the primals")
    found = []
    for v, x in zip(other.tensors, given.tensors, strict=True):
        if v.shape != x.shape:
            raise ShapeError(f"jvp: a tangent of the shape {v.shape} for a primal of {x.shape}")
        found.append(convert_to_tensor(v, dtype=x.dtype, backend=x._backend))
    return found


def _jvp(
    run: Callable[[Values], Any], tensors: Values, tangents: Values, backend: str
) -> tuple[Results, Values]:
    native = engine(backend).jvp
    if native is None or recording.tapes():
        return _jvp_by_vjp(run, tensors, tangents, backend)
    results: Any = None

    def function(*arrays: Any) -> list[Any]:
        nonlocal results
        results = Results(run(wrapped(arrays, backend)))
        return natives(results.tensors)

    found = native(function, natives(tensors), natives(tangents))
    if found is None:  # an op without a forward derivative
        return _jvp_by_vjp(run, tensors, tangents, backend)
    results.tensors = wrapped(found[0], backend)
    changes = zip(wrapped(found[1], backend), results.tensors, strict=True)
    return results, [convert_to_tensor(change, dtype=x.dtype) for change, x in changes]


def _jvp_by_vjp(
    run: Callable[[Values], Any], tensors: Values, tangents: Values, backend: str
) -> tuple[Results, Values]:
    """The gradient is linear in the cotangent; the gradient of that map is the change."""
    results, pull = _vjp(run, tensors, backend)
    _, push = _vjp(pull, [ops.zeros_like(x) for x in results.tensors], backend)
    return results, push(tangents)
