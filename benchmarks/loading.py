"""Time and peak memory of `ember_ml.load` for models of 250 MB, against safetensors alone.

Each backend runs in a process of its own, which times both loads in turns. safetensors maps the
file for torch; the sum of the values makes it load them. The peak memory is that of a process that
loads once, minus its peak before.

    python benchmarks/loading.py [backend ...]
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"layers": "(attention swiglu)x4", "vocab_size": 8192, "hidden_size": 1024},
    "mamba": {"layers": "mamba*8", "vocab_size": 8192, "hidden_size": 1024},
    "experts": {"layers": "(attention moe_mlp)x2", "vocab_size": 8192, "hidden_size": 1536},
}
REPEATS = 5
GOAL_RATIO, GOAL_SECONDS, GOAL_MEMORY = 1.5, 0.2, 1.2


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def warm_up(folder: Path) -> None:
    """Load a small model, so that imports are not measured."""
    import ember_ml

    small = ember_ml.nn.models.LanguageModel("attention swiglu", vocab_size=8, hidden_size=8)
    ember_ml.save(small, folder / "small")
    ember_ml.load(folder / "small")


def load_alone(backend: str) -> Callable[[Path], object]:
    """Return the function that loads a file with safetensors."""
    if backend == "torch":
        import safetensors.torch

        return lambda path: [float(x.sum()) for x in safetensors.torch.load_file(path).values()]
    if backend == "mlx":
        import mlx.core as mx
        import safetensors.mlx

        return lambda path: mx.eval(safetensors.mlx.load_file(str(path)))
    import safetensors.numpy

    return lambda path: safetensors.numpy.load_file(path)


def seconds(function: Callable[[], object]) -> float:
    """Return the time of a call."""
    start = time.perf_counter()
    result = function()
    duration = time.perf_counter() - start
    del result
    return duration


def write(name: str, folder: Path) -> dict[str, float]:
    """Save a model."""
    import ember_ml

    with ember_ml.use_backend("numpy"):
        ember_ml.save(ember_ml.nn.models.LanguageModel(**MODELS[name]), folder)
    return {}


def measure(backend: str, folder: Path) -> dict[str, float]:
    """Return the best times of both loads, in turns."""
    import ember_ml

    ember_ml.set_backend(backend)
    warm_up(folder)
    alone = load_alone(backend)
    best = {"alone": math.inf, "ember": math.inf}
    for _ in range(REPEATS):
        best["alone"] = min(best["alone"], seconds(lambda: alone(folder / "model.safetensors")))
        best["ember"] = min(best["ember"], seconds(lambda: ember_ml.load(folder)))
    return best


def measure_memory(backend: str, folder: Path) -> dict[str, float]:
    """Return the peak memory of one load in MB."""
    import ember_ml

    ember_ml.set_backend(backend)
    warm_up(folder)
    before = peak()
    model = ember_ml.load(folder)
    assert model is not None
    return {"memory": peak() - before}


def in_child(action: str, backend: str, folder: Path) -> dict[str, float]:
    """Return what a measurement prints in a new process."""
    command = [sys.executable, __file__, action, backend, str(folder)]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(out.stdout.splitlines()[-1])
    return result


def main(backends: list[str]) -> None:
    """Print times, peak memory and the goals for each model and backend."""
    import ember_ml

    with tempfile.TemporaryDirectory() as place:
        for name in MODELS:
            folder = Path(place) / name
            in_child("write", name, folder)  # a child inherits the peak memory of its parent
            size = (folder / "model.safetensors").stat().st_size / 2**20
            for backend in backends or ember_ml.backend.available():
                found = in_child("time", backend, folder) | in_child("memory", backend, folder)
                limit = GOAL_RATIO * found["alone"] + GOAL_SECONDS
                print(
                    f"{name:12} {size:4.0f} MB  {backend:6} {found['ember']:.3f} s  safetensors "
                    f"{found['alone']:.3f} s (goal {limit:.3f} s)  memory "
                    f"{found['memory'] / size:.2f}x (goal {GOAL_MEMORY}x)",
                    flush=True,
                )


if __name__ == "__main__":
    actions = {"write": write, "time": measure, "memory": measure_memory}
    if len(sys.argv) == 4 and sys.argv[1] in actions:
        print(json.dumps(actions[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))))
    else:
        main(sys.argv[1:])
