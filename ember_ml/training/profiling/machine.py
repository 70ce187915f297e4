"""Limits of the machine: the rate of a matrix product, and the cost of a dispatched call."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.op import OPS
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.record import Scope
from ember_ml.backend import use_backend

SIZES = (256, 512, 1024, 2048, 4096, 8192)
"""Sizes of the square matrices; larger ones only if measuring them takes little time."""
LEAST = 512
"""Size up to which the budget is three times as large, because short times vary."""
BUDGET = 0.5
"""Seconds that the measurement of a size may take."""
REPEATS = 6
CALLS = 300
"""Number of calls that are timed together, for the mean cost of a call."""


class MatrixRate(NamedTuple):
    """Rate of the fastest matrix product."""

    flops: float
    """Floating-point operations per second."""
    size: int
    """Number of rows and columns of the matrices."""
    dtype: str


def matrix_rate(backend: str, dtype: str = "float32", device: str | None = None) -> MatrixRate:
    """Return the rate of the backend's fastest matrix product, over several sizes.

    It is that of `ops.linear`, which most models use: a backend may compute it in float32 where its
    product of half-precision matrices is slow.

    Args:
        backend: Name of the backend.
        dtype: Dtype of the matrices.
        device: Device of the matrices. Default: the backend's default device.

    Example:
        >>> from ember_ml.training.profiling.machine import matrix_rate
        >>> matrix_rate("numpy").flops > 1e6
        True
    """
    best = MatrixRate(0.0, SIZES[0], dtype)
    with use_backend(backend):
        for size in SIZES:
            x = ops.astype(ops.full((size, size), 0.5, device=device), dtype)
            seconds = _best(functools.partial(ops.linear, x, x), REPEATS)
            if (rate := 2 * size**3 / seconds) > best.flops:
                best = MatrixRate(rate, size, dtype)
            next_one = 8 * seconds * REPEATS
            if next_one > (BUDGET if size >= LEAST else 3 * BUDGET):
                break
    return best


def _best(run: Callable[[], Tensor], repeats: int) -> float:
    """Return the shortest time of a call, with its result computed, after a first call."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        out = run()
        runtime.LOADED[out._backend].wait(out._data)
        seconds.append(time.perf_counter() - start)
    return max(min(seconds[1:]), 1e-9)


def dispatch_costs(backend: str, *, recorded: bool = False) -> dict[str, float]:
    """Return the seconds that the dispatch adds to a native call, by kind of op.

    Args:
        backend: Name of the backend.
        recorded: Whether calls are recorded for a backward pass by VJP rules.
    """
    costs = {}
    with use_backend(backend):
        x = ops.ones((1, 1))
        forms: dict[str, tuple[str, tuple[Any, ...]]] = {
            "unary": ("elementwise.negative", (x,)),
            "binary": ("elementwise.add", (x, x)),
            "reduction": ("reduction.sum", (x, -1)),
            "general": ("manipulation.reshape", (x, (1,))),
        }
        for kind, (key, args) in forms.items():
            native = functools.partial(OPS[key].kernels[x._tag][0], *_native(args))
            with Scope([x]) if recorded else contextlib.nullcontext() as scope:
                given = [scope.sources[0] if scope and y is x else y for y in args]
                call = functools.partial(OPS[key].function, *given)
                costs[kind] = max(0.0, _mean(call) - _mean(native))
    return costs


def _native(args: tuple[Any, ...]) -> list[Any]:
    return [x._data if isinstance(x, Tensor) else x for x in args]


def _mean(call: Callable[[], object]) -> float:
    """Return the mean time of many calls; the shortest of several means."""
    means = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        means.append((time.perf_counter() - start) / CALLS)
    return min(means)
