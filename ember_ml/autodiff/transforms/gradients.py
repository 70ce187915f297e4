"""Gradients of functions with a scalar result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, TypeVar, overload

from ember_ml import ops
from ember_ml._core import recording, runtime, tree
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays, one_backend, wrap, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.transforms.arguments import Arguments, as_tensor, named_in_errors
from ember_ml.autodiff.values import Values

Arg = TypeVar("Arg")
Aux = TypeVar("Aux")


@overload
def value_and_grad(
    fn: Callable[Concatenate[Arg, ...], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[Arg, ...], tuple[Tensor, Arg]]: ...


@overload
def value_and_grad(
    fn: Callable[Concatenate[Arg, ...], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[Arg, ...], tuple[tuple[Tensor, Aux], Arg]]: ...


@overload
def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]: ...


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the value of fn and its gradient.

    Args:
        fn: Function of tensors and trees of tensors that returns a scalar tensor.
        argnums: Position of the argument to differentiate with respect to, or several positions.
        has_aux: Whether fn returns (value, aux). The value is then returned as (value, aux).

    Returns:
        A function with the arguments of fn that returns (value, gradient). The gradient has the
        structure of the argument, or is a tuple with one gradient per position. It is zero for
        tensors that the value does not depend on, and None for leaves without a gradient.

    Example:
        >>> value, slope = value_and_grad(lambda x: (x * x).sum())(tensor.array([1.0, 2.0]))
        >>> float(value), slope.tolist()
        (5.0, [2.0, 4.0])
    """
    return _value_and_grad(fn, argnums, has_aux, "value_and_grad")


@overload
def grad(
    fn: Callable[Concatenate[Arg, ...], Tensor],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
) -> Callable[Concatenate[Arg, ...], Arg]: ...


@overload
def grad(
    fn: Callable[Concatenate[Arg, ...], tuple[Tensor, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[Arg, ...], tuple[Arg, Aux]]: ...


@overload
def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]: ...


def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of fn, like `value_and_grad` without the value.

    Args:
        fn: Function of tensors and trees of tensors that returns a scalar tensor.
        argnums: Position of the argument to differentiate with respect to, or several positions.
        has_aux: Whether fn returns (value, aux). The function then returns (gradient, aux).

    Example:
        >>> float(grad(lambda x: x**3)(2.0))
        12.0
    """
    both = _value_and_grad(fn, argnums, has_aux, "grad")

    @functools.wraps(fn)
    def gradient(*args: object, **kwargs: object) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def _value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, name: str
) -> Callable[..., Any]:
    @named_in_errors(name)
    @functools.wraps(fn)
    def call(*args: object, **kwargs: object) -> Any:
        given = Arguments(name, args, argnums)

        def run(tensors: Values) -> tuple[object, object]:
            result = given.call(fn, tensors, kwargs)
            return _split(result, name) if has_aux else (result, None)

        value, aux, grads = differentiate(run, given.tensors, name)
        return ((value, aux) if has_aux else value), given.unflatten(grads)

    return call


def differentiate(
    run: Callable[[Values], tuple[object, Aux]], tensors: Values, name: str = "value_and_grad"
) -> tuple[Tensor, Aux, Values]:
    """Return value, aux and the gradients of `value, aux = run(tensors)`.

    Args:
        run: Function of a list of tensors. Its value must be a scalar.
        tensors: Floating-point tensors of one backend.
        name: Name of the transform, for errors.

    Returns:
        The value, aux, and one gradient per tensor.
    """
    if not tensors:
        raise ArgumentTypeError(
            f"{name}: there is no floating-point tensor to differentiate with respect to"
        )
    backend = one_backend(name, tensors)
    autodiff = runtime.LOADED[backend].autodiff
    native = autodiff.value_and_grad
    on_tape = recording.OPEN and recording.current()
    if native is None or on_tape or autodiff.differentiates_by_rules():
        with Scope(tensors) as scope:
            result, aux = run(scope.sources)
        value = _scalar(result, backend, name)
        return value, aux, scope.gradient([value], [ops.ones_like(value)])
    call = _NativeCall(run, backend, name)
    data, outputs, grads = native(call.on_arrays, native_arrays(tensors))
    leaves, structure = call.leaves, call.structure
    arrays = iter(outputs)
    aux_leaves = [
        wrap(next(arrays), backend) if isinstance(x, EmberTensor) and x._backend == backend else x
        for x in leaves
    ]
    aux = tree.unflatten(structure, aux_leaves)
    return wrap(data, backend), aux, wrap_all(grads, backend)


class _NativeCall:
    """Function of tensors as one of native arrays, with the structure of its last aux."""

    def __init__(
        self, run: Callable[[Values], tuple[object, object]], backend: str, name: str
    ) -> None:
        self._run = run
        self._backend = backend
        self._name = name
        self.leaves: list[object] = []
        self.structure: Any = None

    def on_arrays(self, *arrays: NativeArray) -> tuple[NativeArray, list[NativeArray]]:
        """Run on native arrays; the tensors in aux are results, so that they are detached."""
        backend = self._backend
        value, aux = self._run(wrap_all(arrays, backend))
        self.leaves, self.structure = tree.flatten(aux)
        return _scalar(value, backend, self._name)._data, [
            x._data for x in self.leaves if isinstance(x, EmberTensor) and x._backend == backend
        ]


def _split(result: object, name: str) -> tuple[object, object]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentTypeError(
            f"{name}: with has_aux=True the function must return (value, aux), not "
            f"{type(result).__name__}"
        )
    return result


def _scalar(value: object, backend: str, name: str) -> Tensor:
    value = value if isinstance(value, EmberTensor) else as_tensor(value, backend)
    if not isinstance(value, EmberTensor):
        raise ArgumentTypeError(
            f"{name}: the function must return a scalar tensor, not {type(value).__name__}"
            + ("; pass has_aux=True if it returns (value, aux)" if isinstance(value, tuple) else "")
        )
    if value.ndim:
        raise ShapeError(
            f"{name}: the function must return a scalar, not a tensor of shape {value.shape}; "
            "take the sum or mean, or use vjp or jacobian"
        )
    if value.dtype.kind != "float":
        raise ArgumentTypeError(
            f"{name}: the function must return a real floating-point scalar, not {value.dtype}"
        )
    return value
