"""Vector-Jacobian and Jacobian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ember_ml import ops
from ember_ml._core import recording
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import native_arrays, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.extraction import ValuesFunction
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.transforms.arguments import (
    Arguments,
    Results,
    engine,
    named_in_errors,
)
from ember_ml.autodiff.values import Values

R = TypeVar("R")


@named_in_errors("vjp")
def vjp(fn: Callable[..., R], *primals: object) -> tuple[R, Callable[[R], tuple[Any, ...]]]:
    """Return the result of fn and its pullback.

    Args:
        fn: Function of tensors and trees of tensors.
        primals: Arguments of fn.

    Returns:
        The result of `fn(*primals)`, and a function that maps a cotangent of the result to a tuple
        with the gradient of each primal.

    Example:
        >>> value, pullback = vjp(lambda x, y: x * y, tensor.array(2.0), tensor.array(3.0))
        >>> [float(g) for g in pullback(tensor.array(1.0))]
        [3.0, 2.0]
    """
    given = Arguments("vjp", primals, range(len(primals)))
    results, pull = flat_vjp(
        lambda tensors: given.call(fn, tensors, {}), given.tensors, given.backend
    )

    @named_in_errors("vjp")
    def pullback(cotangents: R) -> tuple[Any, ...]:
        return given.unflatten(pull(results.flatten_cotangents("vjp", cotangents)))

    return results.unflatten(results.tensors), pullback


def flat_vjp(
    run: Callable[[Values], object], tensors: Values, backend: str
) -> tuple[Results, ValuesFunction]:
    """Return the results of a function of a list of tensors, and its pullback."""
    native = engine(backend).vjp
    if native is None or recording.tapes():
        with Scope(tensors, persistent=True) as scope:
            recorded = _checked(Results(run(scope.sources)))
        return recorded, lambda cotangents: scope.gradient(recorded.tensors, cotangents)
    results: Any = None

    def function(*arrays: NativeArray) -> list[NativeArray]:
        nonlocal results
        results = _checked(Results(run(wrap_all(arrays, backend))))
        return native_arrays(results.tensors)

    outputs, pull = native(function, native_arrays(tensors))
    results.tensors = wrap_all(outputs, backend)
    return results, lambda cotangents: wrap_all(pull(native_arrays(cotangents)), backend)


def _checked(results: Results) -> Results:
    if not results.tensors:
        raise ArgumentTypeError("vjp: the function must return a floating-point tensor")
    return results


@named_in_errors("jvp")
def jvp(fn: Callable[..., R], primals: Sequence[object], tangents: Sequence[object]) -> tuple[R, R]:
    """Return the result of fn and its derivative along the tangents.

    Args:
        fn: Function of tensors and trees of tensors.
        primals: Arguments of fn.
        tangents: Directions, in the structure of `primals`.

    Returns:
        The result of `fn(*primals)`, and its derivative in the same structure.

    Example:
        >>> value, tangent = jvp(lambda x: x**2, (tensor.array(3.0),), (tensor.array(1.0),))
        >>> float(value), float(tangent)
        (9.0, 6.0)
    """
    given = Arguments("jvp", primals, range(len(primals)))
    directions = _tangents(given, primals, tangents)

    def run(tensors: Values) -> R:
        return given.call(fn, tensors, {})

    results, derivatives = flat_jvp(run, given.tensors, directions, given.backend)
    return results.unflatten(results.tensors), results.unflatten(derivatives)


def _tangents(given: Arguments, primals: Sequence[object], tangents: Sequence[object]) -> Values:
    if len(primals) != len(tangents):
        raise ArgumentError(f"jvp: got {len(tangents)} tangents for {len(primals)} primals")
    other = Arguments("jvp", tangents, range(len(tangents)))
    if not given.matches(other):
        raise ArgumentError("jvp: the tangents must have the structure of the primals")
    directions = []
    for v, x in zip(other.tensors, given.tensors, strict=True):
        if v.shape != x.shape:
            raise ShapeError(f"jvp: a tangent has the shape {v.shape}, but its primal {x.shape}")
        directions.append(convert_to_tensor(v, dtype=x.dtype, backend=x._backend))
    return directions


def flat_jvp(
    run: Callable[[Values], object], tensors: Values, tangents: Values, backend: str
) -> tuple[Results, Values]:
    """Return the results of a function of a list of tensors, and their derivatives."""
    native = engine(backend).jvp
    if native is None or recording.tapes():
        return _jvp_by_vjp(run, tensors, tangents, backend)
    results: Any = None

    def function(*arrays: NativeArray) -> list[NativeArray]:
        nonlocal results
        results = Results(run(wrap_all(arrays, backend)))
        return native_arrays(results.tensors)

    both = native(function, native_arrays(tensors), native_arrays(tangents))
    if both is None:  # an op has no JVP
        return _jvp_by_vjp(run, tensors, tangents, backend)
    results.tensors = wrap_all(both[0], backend)
    derivatives = zip(wrap_all(both[1], backend), results.tensors, strict=True)
    return results, [convert_to_tensor(v, dtype=x.dtype) for v, x in derivatives]


def _jvp_by_vjp(
    run: Callable[[Values], object], tensors: Values, tangents: Values, backend: str
) -> tuple[Results, Values]:
    """Compute a JVP as the VJP of the pullback, which is linear in the cotangents."""
    results, pullback = flat_vjp(run, tensors, backend)
    _, push = flat_vjp(pullback, [ops.zeros_like(x) for x in results.tensors], backend)
    return results, push(tangents)
