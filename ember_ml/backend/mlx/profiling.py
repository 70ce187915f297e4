"""Measurement of calls on MLX: `ember_ml.backend.interface.Profiling`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from ember_ml._core import recording
from ember_ml.backend.mlx.nesting import nesting

if TYPE_CHECKING:
    from ember_ml.backend.interface import BackwardTimer, Profiling
    from ember_ml.backend.mlx import profiling

    _checked: Profiling = profiling

METHOD = (
    "MLX is lazy: in profiled steps, the result of each call is computed before the next call, so "
    "that MLX cannot fuse or reorder calls. The backward pass of a call is measured alone, by "
    "mx.vjp of its native function right after it, and not as a part of the step."
)


def wait(out: object) -> None:
    """Compute a result, unless `mx.compile` or `mx.vmap` is tracing."""
    with contextlib.suppress(ValueError, RuntimeError):
        mx.eval(list(_arrays(out)))


class ReplayObserver:
    """Measures the backward pass of each call alone, with arrays that carry no graph."""

    def follow(
        self,
        native: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
        timer: BackwardTimer,
    ) -> None:
        """Run the VJP of a call with respect to all its floating-point arrays.

        Calls outside of gradients have no backward pass.
        """
        if not (nesting.gradients or recording.tapes()):
            return
        arrays = _arrays((args, tuple(kwargs.values())))
        primals = [mx.stop_gradient(x) for x in arrays if _is_differentiable(x)]
        if not primals or not any(map(_is_differentiable, _arrays(out))):
            return

        def call(*given: mx.array) -> list[mx.array]:
            rest = iter(given)
            values = [_replaced(value, rest) for value in args]
            named = {name: _replaced(value, rest) for name, value in kwargs.items()}
            return [x for x in _arrays(native(*values, **named)) if _is_differentiable(x)]

        cotangents = [mx.ones_like(x) for x in _arrays(out) if _is_differentiable(x)]
        try:
            outputs, grads = mx.vjp(call, primals, cotangents)
            mx.eval(outputs, primals, cotangents)
            start = time.perf_counter()
            mx.eval(grads)
            timer.add(time.perf_counter() - start)
        except (ValueError, RuntimeError):  # MLX has no VJP of this function
            return


def untracked() -> AbstractContextManager[None]:
    """Return an empty context: MLX computes no result that is not read."""
    return contextlib.nullcontext()


def observer() -> ReplayObserver:
    """Return an observer for one step."""
    return ReplayObserver()


def _arrays(value: object) -> Iterator[mx.array]:
    """Yield the arrays in nested sequences."""
    if isinstance(value, mx.array):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _arrays(part)


def _replaced(value: Any, given: Iterator[mx.array]) -> Any:
    """Return a value with its differentiable arrays replaced by the given ones."""
    if isinstance(value, mx.array):
        return next(given) if _is_differentiable(value) else mx.stop_gradient(value)
    if isinstance(value, (list, tuple)):
        parts: Sequence[Any] = [_replaced(part, given) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _is_differentiable(x: mx.array) -> bool:
    return bool(mx.issubdtype(x.dtype, mx.inexact))
