"""Cost of recording the causes of spikes: time of a run with and without a causal tape.

    python benchmarks/causal.py [--backend numpy] [--repeats 15]

Each line compares the best of interleaved runs in one process: forward under a tape, and forward
with the gradients of the weights. The peer is the same run on a tape without a causal context.
"first query" is the time of the compaction that the first query of a run pays.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from ember_ml import GradientTape, ops
from ember_ml.backend import available, use_backend
from ember_ml.nn import Sequential, layers

BATCH, STEPS, NEURONS = 32, 100, 100
MODELS = {
    "lif": lambda: layers.LIF(NEURONS),
    "alif": lambda: layers.ALIF(NEURONS),
    "recurrent_lif, delays to 5": lambda: layers.RecurrentLIF(NEURONS, max_delay=5),
}


def run(model: Sequential, x: object, causal: bool, backward: bool) -> GradientTape:
    """Run the model on a tape, and compute the gradients of its weights if asked for."""
    with GradientTape(causal=causal) as tape:
        loss = ops.mean(model(x))
    grads = [loss] if not backward else tape.gradient(loss, list(tape.watched_variables()))
    for each in grads:
        if each is not None:
            each.numpy()  # lazy backends compute
    return tape


def seconds(function: Callable[[], object]) -> float:
    """Return the processor time of a call, which other programs disturb less."""
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(name: str, backward: bool, repeats: int) -> None:
    """Print the ratio of the times with and without a causal context."""
    ops.random.set_seed(0)
    model = Sequential(layers.Dense(NEURONS, NEURONS), MODELS[name]())
    x = ops.random.normal((BATCH, STEPS, NEURONS))
    times: dict[bool, list[float]] = {False: [], True: []}
    for at in range(repeats + 2):
        for causal in (False, True):
            elapsed = seconds(lambda causal=causal: run(model, x, causal, backward))
            if at >= 2:
                times[causal].append(elapsed)
    plain, recorded = (min(times[each]) for each in (False, True))
    tape = run(model, x, True, backward)
    store = tape.causal.spike_store
    first = seconds(lambda: len(store))
    size = sum(each.nbytes for each in store.runs.values())
    rate = len(store) / (BATCH * STEPS * NEURONS)
    what = "forward and backward" if backward else "forward"
    print(
        f"{name:28} {what:21} {1e3 * plain:7.2f} ms  causal {1e3 * recorded:7.2f} ms  "
        f"ratio {recorded / plain:.2f}  first query {1e3 * first:.2f} ms  "
        f"{len(store)} spikes ({100 * rate:.1f} %), "
        f"{size / max(1, len(store)):.1f} bytes each"
    )


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", action="append", help="backend; default: all")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    for backend in options.backend or available():
        print(f"{backend}, T={STEPS} B={BATCH} N={NEURONS}")
        with use_backend(backend):
            for name in MODELS:
                for backward in (False, True):
                    compare(name, backward, options.repeats)


if __name__ == "__main__":
    main()
