"""Causal attention on every installed backend: the same code, values and times.

python examples/demo.py
"""

from __future__ import annotations

import time

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor

BATCH, HEADS, TIME, DIM = 4, 4, 128, 32


def attend(x: tensor.Tensor, weight: tensor.Tensor) -> tensor.Tensor:
    """Return causal self-attention of x, with one projection for queries, keys and values."""
    projected = ops.matmul(ops.rms_norm(x), weight)  # (B, T, 3 H D)
    heads = ops.permute_dims(projected.reshape((BATCH, TIME, 3 * HEADS, DIM)), (0, 2, 1, 3))
    query, key, value = ops.split(heads, 3, axis=1)  # each (B, H, T, D)
    return ops.scaled_dot_product_attention(query, key, value, causal=True)


def run(backend: str) -> tuple[tensor.Tensor, float]:
    """Return the result on a backend, and the best time of ten."""
    with ember_ml.use_backend(backend):
        x = ops.random.normal((BATCH, TIME, HEADS * DIM), seed=0)
        weight = ops.random.normal((HEADS * DIM, 3 * HEADS * DIM), std=0.05, seed=1)
        best = float("inf")
        for _ in range(10):
            start = time.perf_counter()
            out = attend(x, weight)
            ops.synchronize(out)
            best = min(best, time.perf_counter() - start)
    return out, best


def main() -> None:
    """Print values, time and the largest difference from the first backend, for each backend."""
    print(
        f"causal attention, batch {BATCH}, {HEADS} heads, {TIME} steps of {DIM}: "
        "the same code on each backend"
    )
    first = None
    for backend in ember_ml.backend.available():
        out, seconds = run(backend)
        first = out.numpy() if first is None else first
        values = "  ".join(f"{value: .4f}" for value in out[0, 0, 1, :4].tolist())
        difference = float(abs(out.numpy() - first).max())
        print(
            f"{backend:8} {seconds * 1e3:7.2f} ms   {values} ...   "
            f"largest difference {difference:.1e}"
        )


if __name__ == "__main__":
    main()
