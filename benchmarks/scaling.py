"""Time and memory of long mixers over the sequence length, from 1k to 16k tokens.

Times a training step (forward and backward) of one layer on one thread. Each layer runs in a
separate process, in order of increasing length, so that the peak memory is that of its step. Prints
the exponents of the fitted power laws: about 1 for recurrences, and slightly above 1 for
convolutions, whose cost is L log L (1.08 over this range). Draws both as a PNG. Takes about a
minute.

    python benchmarks/scaling.py [backend] [--out runs/scaling.png]
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
from pathlib import Path
from typing import Any

LENGTHS = (1024, 2048, 4096, 8192, 16384)
FEATURES = 32
LAYERS: dict[str, dict[str, Any]] = {
    "fft_conv": {},
    "hyena": {"inner_factor": 1, "projection_groups": 1},
    "mamba": {},
    "mamba2": {},
    "lru": {},
    "gated_linear_attention": {},
    "rwkv6_time_mixer": {},
    "gru": {},
}
WITH_LENGTH = ("fft_conv", "hyena")
BATCH = 2
REPEATS = 5


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(backend: str, name: str) -> dict[str, list[float]]:
    """Return CPU seconds and peak MB of a training step at each length."""
    from ember_ml import use_backend

    with use_backend(backend):
        step_time(name, 64, 1)
        before = peak()
        found: dict[str, list[float]] = {"seconds": [], "megabytes": []}
        for length in LENGTHS:
            found["seconds"].append(step_time(name, length, REPEATS))
            found["megabytes"].append(peak() - before)
    return found


def step_time(name: str, length: int, repeats: int) -> float:
    """Return the best CPU time of a few steps, after one warm-up."""
    from ember_ml import nn, ops
    from ember_ml.registry import create

    options = LAYERS[name] | ({"max_length": length} if name in WITH_LENGTH else {})
    layer = create(f"layers/{name}", features=FEATURES, **options)
    step = nn.value_and_grad(layer, lambda x: ops.mean(ops.square(layer(x))))
    x = ops.random.normal((BATCH, length, FEATURES))
    ops.synchronize(step(x)[0])
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        value, grads = step(x)
        ops.synchronize(value, *grads.values())
        best = min(best, time.process_time() - start)
    return best


def in_a_process(backend: str, name: str) -> dict[str, list[float]]:
    """Return the result of `measure` in a new process on one thread."""
    command = [sys.executable, __file__, backend, "--one", name]
    env = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def exponent(values: list[float]) -> float:
    """Return the slope of the values over the lengths, both as logarithms."""
    x, y = [math.log(n) for n in LENGTHS], [math.log(max(v, 1e-9)) for v in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return top / sum((a - mean_x) ** 2 for a in x)


def draw(found: dict[str, dict[str, list[float]]], path: str) -> None:
    """Plot time and memory of all layers on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 6), layout="constrained")
    for axis, key, label in zip(
        axes, ("seconds", "megabytes"), ("CPU s a step", "MB a step"), strict=True
    ):
        for name, values in found.items():
            axis.plot(
                LENGTHS, values[key], marker="o", label=f"{name} (L^{exponent(values[key]):.2f})"
            )
        axis.set(xscale="log", yscale="log", xlabel="tokens", ylabel=label)
        axis.set_xticks(LENGTHS, [f"{n // 1024}k" for n in LENGTHS])
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def scaling(backend: str, path: str) -> None:
    """Print and plot the table."""
    found: dict[str, dict[str, list[float]]] = {}
    print(f"training step of a layer on {backend}, batch {BATCH}, {FEATURES} features: CPU s (MB)")
    print(f"{'':23}" + "".join(f"{n:>16}" for n in LENGTHS) + f"{'time':>10}{'memory':>10}")
    for name in LAYERS:
        columns = found[name] = in_a_process(backend, name)
        rows = zip(columns["seconds"], columns["megabytes"], strict=True)
        cells = "".join(f"{seconds:9.3f} ({megabytes:4.0f})" for seconds, megabytes in rows)
        powers = [f"L^{exponent(columns[key]):.2f}" for key in ("seconds", "megabytes")]
        print(f"{name:23}{cells}{powers[0]:>10}{powers[1]:>10}", flush=True)
    draw(found, path)
    print(f"plot: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", nargs="?", default="torch")
    parser.add_argument("--out", default="runs/scaling.png")
    parser.add_argument("--one", metavar="layer", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.backend, given.one)))
    else:
        scaling(given.backend, given.out)
