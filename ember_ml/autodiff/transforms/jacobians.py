"""Jacobians and Hessians of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, TypeVar, overload

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.transforms.arguments import Arguments, Results, engine, named_in_errors
from ember_ml.autodiff.transforms.batching import vmap
from ember_ml.autodiff.transforms.products import flat_jvp, flat_vjp
from ember_ml.autodiff.values import Values, basis

Arg = TypeVar("Arg")
Mode = Literal["reverse", "forward"]


@overload
def jacobian(
    fn: Callable[Concatenate[Arg, ...], Tensor], argnums: Literal[0] = 0, mode: Mode = "reverse"
) -> Callable[Concatenate[Arg, ...], Arg]: ...


@overload
def jacobian(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: Mode = "reverse"
) -> Callable[..., Any]: ...


def jacobian(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, mode: Mode = "reverse"
) -> Callable[..., Any]:
    """Return a function that computes the derivative of each element of fn's result.

    Args:
        fn: Function of tensors and trees of tensors.
        argnums: Position of the argument to differentiate with respect to, or several positions.
        mode: "reverse" runs once per element of the result, "forward" once per element of the
            argument. Choose the smaller one.

    Returns:
        A function with the arguments of fn. In place of each tensor of the result it returns the
        structure of the argument. Its tensors have the result's axes followed by the argument's.

    Example:
        >>> jacobian(lambda x: x**2)(tensor.array([1.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 6.0]]
    """
    if mode not in ("reverse", "forward"):
        raise ArgumentError(f"jacobian: mode must be 'reverse' or 'forward', not {mode!r}")
    return _jacobian(fn, argnums, mode)


def _jacobian(
    fn: Callable[..., Any], argnums: int | Sequence[int], mode: Mode | None
) -> Callable[..., Any]:
    """Return the function that `jacobian` returns; without a mode, use the backend's best one."""

    @named_in_errors("jacobian")
    @functools.wraps(fn)
    def derivatives(*args: object, **kwargs: object) -> Any:
        given = Arguments("jacobian", args, argnums)

        def run(tensors: Values) -> object:
            return given.call(fn, tensors, kwargs)

        forward = engine(given.backend).jvp is not None if mode is None else mode == "forward"
        compute = _by_columns if forward else _by_rows
        results, table = compute(run, given)
        return results.unflatten([given.unflatten(row) for row in table])

    return derivatives


def _by_rows(run: Callable[[Values], object], given: Arguments) -> tuple[Results, list[Values]]:
    results, pullback = flat_vjp(run, given.tensors, given.backend)
    table = []
    for index, out in enumerate(results.tensors):

        def row(g: Tensor, index: int = index) -> Values:
            return pullback(
                [g if index == i else ops.zeros_like(x) for i, x in enumerate(results.tensors)]
            )

        grads = vmap(row)(basis(out, out.shape)) if out.size else map(_no_rows, given.tensors)
        table.append(
            [
                ops.reshape(g, (*out.shape, *x.shape))
                for g, x in zip(grads, given.tensors, strict=True)
            ]
        )
    return results, table


def _no_rows(x: Tensor) -> Tensor:
    """Return the derivatives of a result without elements."""
    return ops.reshape(ops.zeros_like(x), (-1,))[:0]


def _by_columns(run: Callable[[Values], object], given: Arguments) -> tuple[Results, list[Values]]:
    results: Any = None
    columns = []
    for index, x in enumerate(given.tensors):

        def column(v: Tensor, index: int = index) -> Values:
            nonlocal results
            tangents = [v if index == i else ops.zeros_like(y) for i, y in enumerate(given.tensors)]
            results, derivatives = flat_jvp(run, given.tensors, tangents, given.backend)
            return derivatives

        batched = vmap(column, out_axes=-1)(basis(x, x.shape))
        columns.append([ops.reshape(c, (*c.shape[:-1], *x.shape)) for c in batched])
    return results, [list(row) for row in zip(*columns, strict=True)]


@overload
def hessian(
    fn: Callable[Concatenate[Tensor, ...], Tensor], argnums: Literal[0] = 0
) -> Callable[Concatenate[Tensor, ...], Tensor]: ...


@overload
def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]: ...


def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of fn's scalar result.

    Args:
        fn: Function of tensors and trees of tensors that returns a scalar tensor.
        argnums: Position of the argument to differentiate with respect to, or several positions.

    Returns:
        A function with the arguments of fn that returns the Jacobian of the gradient.

    Example:
        >>> hessian(lambda x: (x**3).sum())(tensor.array([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return _jacobian(jacobian(fn, argnums), argnums, None)
