"""Gradients, batching and compilation as MLX offers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import mlx.core as mx

ENGINE: Final = "replay"
"""MLX differentiates functions: a recorded program is run again inside `mx.vjp`."""
WITHOUT_GRADIENT: frozenset[str] = frozenset(
    {
        "linearalg.decompositions.cholesky",
        "linearalg.decompositions.eig",
        "linearalg.decompositions.eigh",
        "linearalg.decompositions.eigvals",
        "linearalg.decompositions.eigvalsh",
        "linearalg.decompositions.lu",
        "linearalg.decompositions.qr",
        "linearalg.decompositions.svd",
        "linearalg.decompositions.svdvals",
        "linearalg.matrix_functions.det",
        "linearalg.matrix_functions.slogdet",
        "linearalg.solving.inv",
        "linearalg.solving.pinv",
        "linearalg.solving.solve",
        "linearalg.solving.solve_triangular",
    }
)
"""Ops whose kernels MLX cannot differentiate: they are given the ops' rules."""
COMPILES = ""
COMPILES_AT_ONCE = True
vjp = None  # MLX would run the function anew for each cotangent; a recorded program stays as it is
CHECKPOINT_SEES_CLOSURES = False
scan = None  # mx.compile unrolls loops in little time


def gradient_depth() -> int:
    """How many gradients this thread is inside of: none that a compiled function would mind."""
    return 0


def pull(
    function: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The outputs and the gradients of the primals."""
    return mx.vjp(function, list(primals), list(cotangents))


def value_and_grad(
    function: Callable[..., tuple[Any, list[Any]]], primals: Sequence[Any]
) -> tuple[Any, list[Any], list[Any]]:
    """The value, the other results, and the gradients of (value, others) = function(*primals)."""
    every = list(range(len(primals)))
    (value, others), grads = mx.value_and_grad(function, every)(*primals)
    return value, others, list(grads) if isinstance(grads, (list, tuple)) else [grads]


def jvp(
    function: Callable[..., list[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]] | None:
    """The outputs and their change along the tangents; None if an op has no forward derivative."""
    try:
        return mx.jvp(function, list(primals), list(tangents))
    except (ValueError, RuntimeError) as error:
        if "jvp" not in str(error).lower():
            raise
        return None


def vmap(
    function: Callable[..., list[Any]], axes: Sequence[int | None], arrays: Sequence[Any]
) -> list[Any] | None:
    """The function over an axis of each array, results along axis 0; None if an op cannot."""
    try:
        return mx.vmap(function, tuple(axes), 0)(*arrays)
    except Exception:  # if it is not for the batching, it comes again from a single example
        return None


def compile(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function compiled; random numbers are drawn anew at each call."""
    return mx.compile(function, inputs=mx.random.state, outputs=mx.random.state, **options)


def with_vjp(function: Callable[..., Any], pull: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a gradient of its own: pull(primals, cotangents, outputs)."""
    wrapped = mx.custom_function(function)

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        single = not isinstance(primals, (list, tuple))
        grads = pull([primals] if single else primals, cotangents, outputs)
        return grads[0] if single else tuple(grads)

    def jvp(primals: Any, tangents: Any) -> Any:
        raise ValueError("a function with a vjp of its own has no jvp")

    wrapped.vjp(vjp)
    wrapped.jvp(jvp)
    return wrapped


def custom(
    forward: Callable[..., Sequence[Any]],
    pull: Callable[[Sequence[Any], Sequence[Any], bool], Sequence[Any]],
    primals: Sequence[Any],
) -> Sequence[Any]:
    """forward(*primals), with the gradients pull(primals, cotangents, again).

    `again` says that the gradients will be differentiated themselves; MLX does not tell, and what
    the first run left belongs to another transform.
    """
    function = with_vjp(
        lambda *arrays: tuple(forward(*arrays)),
        lambda given, cotangents, outputs: pull(given, cotangents, True),
    )
    return function(*primals)


def checkpoint(function: Callable[..., list[Any]], arrays: Sequence[Any]) -> list[Any]:
    """The outputs; what is in between is computed again for the gradient.

    Gradients reach the arrays alone, not what the function reads from elsewhere.
    """
    return mx.checkpoint(function)(*arrays)


def evaluate(arrays: Sequence[Any]) -> None:
    """Have the arrays computed, so that what they wait for does not pile up."""
    mx.eval(list(arrays))
