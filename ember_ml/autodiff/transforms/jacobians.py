"""Whole Jacobians and Hessians of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.transforms._arguments import Arguments, Results
from ember_ml.autodiff.transforms.batching import vmap
from ember_ml.autodiff.transforms.products import _jvp, _vjp
from ember_ml.autodiff.values import Values, basis


def jacobian(
    fn: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    mode: Literal["reverse", "forward"] = "reverse",
) -> Callable[..., Any]:
    """A function that gives the derivative of each element of fn's result.

    For each tensor of the result it gives a nest like the argument, of tensors whose shape is the
    result's followed by the argument's.

    Args:
        fn: a function of tensors and nests of them.
        argnums: the position of the argument to differentiate for, or several positions.
        mode: "reverse" goes by the elements of the result, "forward" by those of the argument; the
            fewer the better.

    Example:
        >>> jacobian(lambda x: x**2)(tensor.array([1.0, 3.0])).tolist()
        [[2.0, 0.0], [0.0, 6.0]]
    """
    if mode not in ("reverse", "forward"):
        raise ArgumentError(f"jacobian: mode must be 'reverse' or 'forward', not {mode!r}")

    @functools.wraps(fn)
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        given = Arguments("jacobian", args, argnums)

        def run(tensors: Values) -> Any:
            return given.call(fn, tensors, kwargs)

        compute = _by_rows if mode == "reverse" else _by_columns
        results, table = compute(run, given)
        return results.nest([given.nest(row) for row in table])

    return derivatives


def _by_rows(run: Callable[[Values], Any], given: Arguments) -> tuple[Results, list[list[Any]]]:
    results, pull = _vjp(run, given.tensors, given.backend)
    table = []
    for at, out in enumerate(results.tensors):

        def row(g: EmberTensor, at: int = at) -> Values:
            return pull(
                [g if at == i else ops.zeros_like(x) for i, x in enumerate(results.tensors)]
            )

        grads = vmap(row)(basis(out, out.shape)) if out.size else map(_no_rows, given.tensors)
        table.append(
            [
                ops.reshape(g, (*out.shape, *x.shape))
                for g, x in zip(grads, given.tensors, strict=True)
            ]
        )
    return results, table


def _no_rows(x: EmberTensor) -> EmberTensor:
    """The derivatives of a result without elements."""
    return ops.reshape(ops.zeros_like(x), (-1,))[:0]


def _by_columns(run: Callable[[Values], Any], given: Arguments) -> tuple[Results, list[list[Any]]]:
    results: Any = None
    columns = []
    for at, x in enumerate(given.tensors):

        def column(v: EmberTensor, at: int = at) -> Values:
            nonlocal results
            zeros = [v if at == i else ops.zeros_like(y) for i, y in enumerate(given.tensors)]
            results, changes = _jvp(run, given.tensors, zeros, given.backend)
            return changes

        found = vmap(column, out_axes=-1)(basis(x, x.shape))
        columns.append([ops.reshape(c, (*c.shape[:-1], *x.shape)) for c in found])
    return results, [list(row) for row in zip(*columns, strict=True)]


def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of fn's scalar result.

    Example:
        >>> hessian(lambda x: (x**3).sum())(tensor.array([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(jacobian(fn, argnums), argnums, mode="forward")
