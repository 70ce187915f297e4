"""Gradients, batching and compilation with MLX's function transforms."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import mlx.core as mx

from ember_ml._core.errors import UnsupportedOpError
from ember_ml.backend.mlx.custom import attach_vjp as attach_vjp
from ember_ml.backend.mlx.nesting import nesting

ENGINE: Final = "replay"
WITHOUT_GRADIENT: frozenset[str] = frozenset(
    {
        "cumulative.logcumsumexp",  # NaN at -inf
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
# mx.vjp would run the function again for each cotangent, and the second derivatives of several
# primitives, their JVPs and the batched forms of their VJPs are wrong (MLX 0.32): MLX's own
# transforms compute the outermost gradient only, the VJP rules of the ops everything inside it.
vjp = jvp = None

Function = Callable[..., list[mx.array]]


def gradient_depth() -> int:
    """Return 0: compiled functions can be differentiated at any depth."""
    return 0


@contextlib.contextmanager
def _differentiating() -> Iterator[None]:
    nesting.gradients += 1
    try:
        yield
    except ValueError as error:
        text = str(error)
        if not text.startswith("[") or "vjp" not in text.lower():
            raise
        raise UnsupportedOpError(
            f"MLX cannot differentiate an op of this function: {text}"
        ) from error
    finally:
        nesting.gradients -= 1


def differentiates_by_rules() -> bool:
    """Return whether this thread is inside a transform of MLX."""
    return nesting.gradients > 0 or nesting.batches > 0


def is_batching() -> bool:
    """Return whether this thread is inside `mx.vmap`."""
    return nesting.batches > 0


def run_vjp(
    function: Function, primals: Sequence[mx.array], cotangents: Sequence[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """Return the outputs of `function(*primals)` and the gradients of the primals."""
    with _differentiating():
        return mx.vjp(function, list(primals), list(cotangents))


def value_and_grad(
    function: Callable[..., tuple[mx.array, list[mx.array]]], primals: Sequence[mx.array]
) -> tuple[mx.array, list[mx.array], list[mx.array]]:
    """Return value, aux and the gradients of `value, aux = function(*primals)`."""
    argnums = list(range(len(primals)))
    with _differentiating():
        (value, aux), grads = mx.value_and_grad(function, argnums)(*primals)
    return value, aux, list(grads) if isinstance(grads, (list, tuple)) else [grads]


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

    nesting.batches += 1
    try:
        return mx.vmap(traceable, tuple(axes), 0)(*arrays)
    except ValueError as error:
        if traced:  # the function is fine, an op's batching rule is not
            raise ValueError(f"[vmap] {error}") from error
        raise
    finally:
        nesting.batches -= 1


def is_compiling() -> bool:
    """Return False: MLX traces by calling the function."""
    return False


def is_tracing_error(error: BaseException) -> bool:
    """Return whether the error says that an op cannot run under `mx.vmap` or `mx.compile`."""
    text = str(error)
    return "function transformations" in text or "::vmap]" in text or "[vmap]" in text


def compile(function: Function, *, trusted: bool = False, **options: object) -> Function:
    """Return the compiled function; it draws new random numbers at each call."""
    return mx.compile(function, inputs=mx.random.state, outputs=mx.random.state, **options)


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
    if nesting.batches:  # mx.vmap would drop the checkpoint
        return function(*arrays)
    return mx.checkpoint(function)(*_with_joint_gradients(*arrays))


def _compute_together(given: object, cotangents: Sequence[mx.array], out: object) -> list[mx.array]:
    """Return the cotangents, each of which is available when all are.

    Otherwise MLX may compute the gradients of one argument in all checkpoints first, and keep the
    values that the gradients of the others need.
    """
    together = list(cotangents)
    return mx.depends(together, together)


_with_joint_gradients = attach_vjp(lambda *arrays: arrays, _compute_together)


def evaluate(arrays: Sequence[mx.array]) -> None:
    """Compute lazy arrays now, so that pending graphs do not accumulate."""
    mx.eval(list(arrays))
