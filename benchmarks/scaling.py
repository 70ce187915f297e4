"""Time and memory of long mixers against the length of the sequence, from 1k to 16k tokens.

A training step (forward and backward) of one layer on one thread, each measured in a process of
its own, so that the peak of its memory is its own. Prints the exponents of the fitted power laws:
about 1 for recurrences, and a little above for convolutions, whose cost is L log L (1.08 over this
range). Draws both as a PNG.

    python benchmarks/scaling.py [backend] [--out scaling.png]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from typing import Any

LENGTHS = (1024, 2048, 4096, 8192, 16384)
LAYERS = {
    "fft_conv": {"features": 64},
    "hyena": {"features": 64, "inner_factor": 1, "projection_groups": 1},
    "mamba": {"features": 64},
    "mamba2": {"features": 64},
    "lru": {"features": 64},
}
WITH_LENGTH = ("fft_conv", "hyena")
BATCH = 4
REPEATS = 3


def peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(backend: str, name: str, length: int) -> dict[str, float]:
    """CPU seconds of a training step, and the MB that it needs."""
    from ember_ml import nn, ops, use_backend
    from ember_ml.registry import create

    options = dict(LAYERS[name]) | ({"max_length": length} if name in WITH_LENGTH else {})
    with use_backend(backend):
        layer = create(f"layers/{name}", **options)
        step = nn.value_and_grad(layer, lambda x: ops.mean(ops.square(layer(x))))
        ops.synchronize(step(ops.ones((BATCH, 64, 64)))[0])
        x = ops.random.normal((BATCH, length, 64))
        ops.synchronize(x)
        before, best = peak(), math.inf
        for _ in range(REPEATS):
            start = time.process_time()
            value, grads = step(x)
            ops.synchronize(value, *grads.values())
            best = min(best, time.process_time() - start)
    return {"seconds": best, "megabytes": peak() - before}


def in_a_process(backend: str, name: str, length: int) -> dict[str, float]:
    """`measure`, alone and on one thread."""
    command = [sys.executable, __file__, backend, "--one", name, str(length)]
    env = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def exponent(values: list[float]) -> float:
    """The slope of the values against the lengths, both as logarithms."""
    x, y = [math.log(n) for n in LENGTHS], [math.log(max(v, 1e-9)) for v in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return top / sum((a - mean_x) ** 2 for a in x)


def draw(found: dict[str, dict[str, list[float]]], path: str) -> None:
    """Both measures of all layers, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for axis, key, label in zip(
        axes, ("seconds", "megabytes"), ("CPU s a step", "MB a step"), strict=True
    ):
        for name, values in found.items():
            axis.plot(
                LENGTHS, values[key], marker="o", label=f"{name} (L^{exponent(values[key]):.2f})"
            )
        axis.set(xscale="log", yscale="log", xlabel="tokens", ylabel=label)
        axis.set_xticks(LENGTHS, [f"{n // 1024}k" for n in LENGTHS])
        axis.legend()
    figure.savefig(path, dpi=120)


def scaling(backend: str, path: str) -> None:
    """Print the table and draw it."""
    found: dict[str, dict[str, list[float]]] = {}
    print(f"training step of one layer on {backend}, batch {BATCH}, 64 features: CPU s (MB)")
    print(f"{'':10}" + "".join(f"{n:>16}" for n in LENGTHS) + f"{'time':>10}{'memory':>10}")
    for name in LAYERS:
        rows: list[Any] = [in_a_process(backend, name, length) for length in LENGTHS]
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        found[name] = columns
        cells = "".join(f"{r['seconds']:9.3f} ({r['megabytes']:4.0f})" for r in rows)
        powers = [f"L^{exponent(columns[key]):.2f}" for key in ("seconds", "megabytes")]
        print(f"{name:10}{cells}{powers[0]:>10}{powers[1]:>10}", flush=True)
    draw(found, path)
    print(f"drawn to {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", nargs="?", default="torch")
    parser.add_argument("--out", default="scaling.png")
    parser.add_argument("--one", nargs=2, metavar=("layer", "length"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.backend, given.one[0], int(given.one[1]))))
    else:
        scaling(given.backend, given.out)
