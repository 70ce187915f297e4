"""Gradients of functions with a scalar result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.transforms._arguments import (
    Arguments,
    as_tensor,
    engine,
    natives,
    wrapped,
)
from ember_ml.autodiff.values import Values


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives fn's value and its gradient.

    Args:
        fn: a function with a scalar result, of tensors and nests of them.
        argnums: the position of the argument to differentiate for, or several positions.
        has_aux: whether fn gives (value, anything); the gradient function then gives
            ((value, anything), gradient).

    The gradient has the structure of the argument (a tuple of such for several positions): zeros
    where the value does not depend on a tensor, None for leaves that are no floating tensors.

    Example:
        >>> value, slope = value_and_grad(lambda x: (x * x).sum())(tensor.array([1.0, 2.0]))
        >>> float(value), slope.tolist()
        (5.0, [2.0, 4.0])
    """
    return _value_and_grad(fn, argnums, has_aux, "value_and_grad")


def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives fn's gradient; as `value_and_grad`, without the value.

    With `has_aux` it gives (gradient, aux).

    Example:
        >>> float(grad(lambda x: x**3)(2.0))
        12.0
    """
    both = _value_and_grad(fn, argnums, has_aux, "grad")

    @functools.wraps(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def _value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, name: str
) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = Arguments(name, args, argnums)

        def run(tensors: Values) -> tuple[EmberTensor, Any]:
            result = given.call(fn, tensors, kwargs)
            value, aux = _split(result, name) if has_aux else (result, None)
            return _scalar(as_tensor(value, given.backend), name), aux

        native = engine(given.backend).value_and_grad
        differentiate = _by_tape if native is None or recording.tapes() else _natively
        value, aux, grads = differentiate(run, given.tensors, given.backend)
        return ((value, aux) if has_aux else value), given.nest(grads)

    return call


def _by_tape(run: Callable[[Values], Any], tensors: Values, backend: str) -> tuple[Any, Any, Any]:
    with Scope(tensors) as scope:
        value, aux = run(scope.sources)
    return value, aux, scope.gradient([value], [ops.ones_like(value)])


def _natively(run: Callable[[Values], Any], tensors: Values, backend: str) -> tuple[Any, Any, Any]:
    """By the framework's own transform; tensors among aux go through it as results."""
    structure: Any = None
    leaves: list[Any] = []

    def function(*arrays: Any) -> tuple[Any, list[Any]]:
        nonlocal structure, leaves
        value, aux = run(wrapped(arrays, backend))
        leaves, structure = tree.flatten(aux)
        inside = [x for x in leaves if isinstance(x, EmberTensor) and x._backend == backend]
        return value._data, natives(inside)

    native = engine(backend).value_and_grad
    assert native is not None
    value, found, grads = native(function, natives(tensors))
    arrays = iter(found)
    aux = [
        wrap(next(arrays), backend) if isinstance(x, EmberTensor) and x._backend == backend else x
        for x in leaves
    ]
    return wrap(value, backend), tree.unflatten(structure, aux), wrapped(grads, backend)


def _split(result: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentTypeError(f"{name}: with has_aux the function must give (value, aux)")
    return result


def _scalar(value: Any, name: str) -> EmberTensor:
    if not isinstance(value, EmberTensor):
        raise ArgumentTypeError(
            f"{name}: the function must give a scalar tensor, not {type(value).__name__}"
            + ("; say has_aux=True if it gives (value, aux)" if isinstance(value, tuple) else "")
        )
    if value.ndim:
        raise ShapeError(
            f"{name}: the function must give a scalar, not the shape {value.shape}; take its sum "
            "or mean, or use vjp or jacobian"
        )
    if value.dtype.kind != "float":
        raise ArgumentTypeError(
            f"{name}: the function must give a real floating scalar, not {value.dtype}"
        )
    return value
