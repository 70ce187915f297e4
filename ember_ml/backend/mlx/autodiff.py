"""Gradients, batching and compilation with MLX's function transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import mlx.core as mx

ENGINE: Final = "replay"
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
COMPILE_UNAVAILABLE = ""
COMPILES_QUICKLY = True
CHECKPOINT_SEES_CLOSURES = False
scan = None  # mx.compile unrolls loops in little time
vjp = None  # mx.vjp would run the function again for each cotangent; a recorded program does not

Function = Callable[..., list[mx.array]]


def gradient_depth() -> int:
    """Return 0: compiled functions can be differentiated at any depth."""
    return 0


def run_vjp(
    function: Function, primals: Sequence[mx.array], cotangents: Sequence[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """Return the outputs of `function(*primals)` and the gradients of the primals."""
    return mx.vjp(function, list(primals), list(cotangents))


def value_and_grad(
    function: Callable[..., tuple[mx.array, list[mx.array]]], primals: Sequence[mx.array]
) -> tuple[mx.array, list[mx.array], list[mx.array]]:
    """Return value, aux and the gradients of `value, aux = function(*primals)`."""
    argnums = list(range(len(primals)))
    (value, aux), grads = mx.value_and_grad(function, argnums)(*primals)
    return value, aux, list(grads) if isinstance(grads, (list, tuple)) else [grads]


def jvp(
    function: Function, primals: Sequence[mx.array], tangents: Sequence[mx.array]
) -> tuple[list[mx.array], list[mx.array]] | None:
    """Return the outputs and their derivatives along the tangents; None if an op has no JVP."""
    try:
        return mx.jvp(function, list(primals), list(tangents))
    except (ValueError, RuntimeError) as error:
        if "jvp" not in str(error).lower():
            raise
        return None


def vmap(
    function: Function, axes: Sequence[int | None], arrays: Sequence[mx.array]
) -> list[mx.array]:
    """Map the function over an axis of each array; return the outputs, batched along axis 0."""
    traced = False

    def traceable(*args: mx.array) -> list[mx.array]:
        nonlocal traced
        outputs = function(*args)
        traced = True
        return outputs

    try:
        return mx.vmap(traceable, tuple(axes), 0)(*arrays)
    except ValueError as error:
        if traced:  # the function is fine, an op's batching rule is not
            raise ValueError(f"[vmap] {error}") from error
        raise


def is_compiling() -> bool:
    """Return False: MLX traces by calling the function."""
    return False


def is_tracing_error(error: BaseException) -> bool:
    """Return whether the error says that an op cannot run under `mx.vmap` or `mx.compile`."""
    text = str(error)
    return "function transformations" in text or "::vmap]" in text or "[vmap]" in text


def compile(function: Function, **options: object) -> Function:
    """Return the compiled function; it draws new random numbers at each call."""
    return mx.compile(function, inputs=mx.random.state, outputs=mx.random.state, **options)


def attach_vjp(
    function: Callable[..., mx.array | tuple[mx.array, ...]],
    pullback: Callable[..., Sequence[mx.array]],
) -> Callable[..., mx.array | tuple[mx.array, ...]]:
    """Return the function with the gradients `pullback(primals, cotangents, outputs)`."""
    wrapped = mx.custom_function(function)

    def vjp(
        primals: mx.array | Sequence[mx.array],
        cotangents: mx.array | Sequence[mx.array],
        outputs: mx.array | Sequence[mx.array],
    ) -> mx.array | tuple[mx.array, ...]:
        single = not isinstance(primals, (list, tuple))
        grads = pullback([primals] if single else primals, cotangents, outputs)
        return grads[0] if single else tuple(grads)

    def jvp(primals: Sequence[mx.array], tangents: Sequence[mx.array]) -> None:
        raise ValueError("a function with a custom VJP has no jvp")

    wrapped.vjp(vjp)
    wrapped.jvp(jvp)
    return wrapped


def custom_vjp(
    forward: Callable[..., Sequence[mx.array]],
    pullback: Callable[[Sequence[mx.array], Sequence[mx.array], bool], Sequence[mx.array]],
    primals: Sequence[mx.array],
) -> Sequence[mx.array]:
    """Return `forward(*primals)` with the gradients `pullback(primals, cotangents, rerun)`.

    `rerun` says that the pullback must not reuse values of the forward pass. It is always true on
    MLX, where these values belong to another transform.
    """
    function = attach_vjp(
        lambda *arrays: tuple(forward(*arrays)),
        lambda given, cotangents, outputs: pullback(given, cotangents, True),
    )
    return function(*primals)


def checkpoint(function: Function, arrays: Sequence[mx.array]) -> list[mx.array]:
    """Return the outputs; the backward pass computes the intermediate values again.

    Gradients reach the arrays only, not the values that the function closes over.
    """
    return mx.checkpoint(function)(*arrays)


def evaluate(arrays: Sequence[mx.array]) -> None:
    """Compute lazy arrays now, so that pending graphs do not accumulate."""
    mx.eval(list(arrays))
