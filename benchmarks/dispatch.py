"""Overhead of an op call in Ember over the framework's own, compared with keras.ops, in one run.

Twelve common ops, and expressions with indices and numbers, on 8x8 float32 tensors, for which the
arithmetic takes almost no time. Each figure is the best of many repetitions. The libraries take
turns, so that noise affects all of them equally.

    python benchmarks/dispatch.py [backend ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

REPEATS, CALLS = 60, 2000
GOALS = {"unary": 0.5, "binary": 0.5}
OPS = {
    "exp": "unary",
    "abs": "unary",
    "negative": "unary",
    "add": "binary",
    "multiply": "binary",
    "maximum": "binary",
    "matmul": "other",
    "sum": "other",
    "reshape": "other",
    "transpose": "other",
    "concatenate": "other",
    "softmax": "other",
}

EXPRESSIONS = ("x[1:]", "x[0]", "x[:, 1:]", "x * 2.0", "x + 1")
"""Written the same in every library."""

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def arguments(name: str, x: Any) -> tuple[Any, ...]:
    """Return the arguments of the op."""
    if OPS[name] == "binary" or name == "matmul":
        return x, x
    return {
        "sum": (x, 1),
        "reshape": (x, (4, 16)),
        "concatenate": ([x, x], 0),
        "softmax": (x, -1),
    }.get(name, (x,))


def native_ops(backend: str) -> tuple[Any, dict[str, Callable[..., Any]]]:
    """Return the framework's own array and functions."""
    if backend == "numpy":
        import numpy as np

        def softmax(x: Any, axis: int) -> Any:
            e = np.exp(x - x.max(axis, keepdims=True))
            return e / e.sum(axis, keepdims=True)

        functions = {name: getattr(np, name) for name in OPS if name != "softmax"} | {
            "softmax": softmax
        }
        return np.ones((8, 8), np.float32), functions
    if backend == "torch":
        import torch

        functions = {name: getattr(torch, name) for name in OPS if name != "transpose"}
        return torch.ones(8, 8), functions | {"transpose": torch.t}
    import mlx.core as mx

    return mx.ones((8, 8)), {name: getattr(mx, name) for name in OPS}


def keras_ops(backend: str) -> dict[str, Callable[..., Any]]:
    """Return keras.ops on the same framework, if installed (on NumPy it also needs jax)."""
    if backend not in ("numpy", "torch"):
        return {}
    os.environ["KERAS_BACKEND"] = backend
    try:
        import keras
    except ImportError:
        return {}
    return {name: getattr(keras.ops, name) for name in OPS}


def best(timers: dict[str, timeit.Timer]) -> dict[str, float]:
    """Return microseconds per call, measured in turns."""
    times = dict.fromkeys(timers, float("inf"))
    for _ in range(REPEATS):
        for name, clock in timers.items():
            times[name] = min(times[name], clock.timeit(CALLS) / CALLS * 1e6)
    return times


def timer(function: Callable[..., Any], args: tuple[Any, ...]) -> timeit.Timer:
    """Time the call as a program writes it: f(a0, a1)."""
    names = [f"a{position}" for position in range(len(args))]
    scope = dict(zip(names, args, strict=True), f=function)
    return timeit.Timer(f"f({', '.join(names)})", globals=scope)


def measure(backend: str) -> list[dict[str, Any]]:
    """Return the rows of one backend."""
    from ember_ml import ops, use_backend
    from ember_ml.nn import tensor

    array, native = native_ops(backend)
    keras = keras_ops(backend)
    with use_backend(backend):
        x = tensor.convert_to_tensor(array)
    array = x.native  # one array for all: torch's ops on a view take a little longer
    rows = []
    for name, kind in OPS.items():
        calls: dict[str, Call] = {
            "native": (native[name], arguments(name, array)),
            "ember": (getattr(ops, name), arguments(name, x)),
        }
        if keras:
            calls["keras"] = (keras[name], arguments(name, array))
        timers = {library: timer(*call) for library, call in calls.items()}
        rows.append({"op": name, "kind": kind, **best(timers)})
    for text in EXPRESSIONS:
        operands = {"native": array, "ember": x}
        timers = {
            library: timeit.Timer(text, globals={"x": each}) for library, each in operands.items()
        }
        rows.append({"op": text, "kind": "binary", **best(timers)})
    return rows


def show(backend: str, rows: list[dict[str, Any]]) -> None:
    """Print the overheads in microseconds and the missed goals."""
    print(f"\n{backend}: us per call on 8x8 float32, best of {REPEATS} x {CALLS}")
    print(
        f"{'op':12} {'native':>8} {'ember':>8} {'keras':>8} "
        f"{'over':>7} {'goal':>5} {'keras over / ember over':>24}"
    )
    for row in rows:
        over = row["ember"] - row["native"]
        goal = GOALS.get(row["kind"], 1.0)
        keras = f"{row['keras']:8.2f}" if "keras" in row else f"{'-':>8}"
        ratio = (row["keras"] - row["native"]) / max(over, 0.01) if "keras" in row else None
        shown = "-" if ratio is None else f"{ratio:.1f}x"
        mark = "" if over <= goal and (ratio is None or ratio >= 5) else "  <-- misses"
        print(
            f"{row['op']:12} {row['native']:8.2f} {row['ember']:8.2f} {keras} "
            f"{over:7.2f} {goal:5.1f} {shown:>24}{mark}"
        )


def main() -> None:
    """Measure each backend in its own process, because Keras supports one per process."""
    if sys.argv[1:2] == ["--json"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    from ember_ml.backend import available

    for backend in sys.argv[1:] or available():
        command = [sys.executable, __file__, "--json", backend]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        show(backend, json.loads(out.splitlines()[-1]))


if __name__ == "__main__":
    main()
