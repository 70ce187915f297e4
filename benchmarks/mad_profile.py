"""Where the time of `make mad` goes, and the share of the machine's peak that it reaches.

Trains the models of the comparison with the trainers, tasks and batches of its runs, for a few
steps each, in one thread. Everything is CPU time. For each architecture:

- ms a step: the best of the measured steps, as the mean over the tasks weighted by their steps.
- run s: the steps of all its runs at that speed, without set-up and evaluations.
- share of peak: floating-point operations of these steps (three times those of a forward pass,
  `ember_ml.nn.flops`) over what the best matrix product of the backend does in that time.
- by op: other steps, measured with timers. On NumPy the native function of each op of Ember, in the
  forward and the backward pass, each VJP rule on native arrays ("multiply backward") and the update
  of the parameters; on torch the self time of each of torch's own ops, by its profiler. "Python" is
  the rest of the step, with the sums of gradients on NumPy. The shares are applied to the time of a
  step without timers.

    python benchmarks/mad_profile.py [numpy] [torch] [--steps 20] [--tasks recall ...]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["KINETO_LOG_LEVEL"] = "99"  # no messages of torch's profiler

import ember_ml
from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.op import OPS
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import architecture
from ember_ml.mad.run import make_model, make_trainer
from ember_ml.mad.scales import get_scale, make_runs, task_names
from ember_ml.nn.flops import count_flops
from ember_ml.nn.tensor import array
from ember_ml.registry import build
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback
from ember_ml.training.trainer import batches
from ember_ml.training.trainer.read_positions import read_parts, takes_positions

ARCHITECTURES = ("attention+swiglu", "mamba+swiglu", "hyena+swiglu")
WARM_UP = 3
BACKWARD_FACTOR = 3
"""Operations of a training step per operation of the forward pass: a product has two gradients."""
PYTHON = "Python"
GEMM_SIZES = (256, 512, 1024)

Times = Counter[str]
"""CPU seconds by op."""


class Measurement(NamedTuple):
    """A run's steps."""

    run: RunConfig
    seconds: float
    """Best CPU time of a step."""
    flops: float
    """Operations of a step."""
    times: Times
    """CPU seconds by op, of a step with timers."""


class Clock(Callback):
    """Measures the CPU time of each step; the last ones with timers in the ops.

    Args:
        meter: Context manager that measures the ops.
        plain: Number of steps before those with timers.
    """

    def __init__(self, meter: AbstractContextManager[Times], plain: int) -> None:
        self.seconds: list[float] = []
        self.times: Times = Counter()
        self._meter = meter
        self._plain = plain
        self._last = time.process_time()

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Record the time since the previous step, and start the timers after the plain steps."""
        self.seconds.append(time.process_time() - self._last)
        if len(self.seconds) == self._plain:
            self.times = self._meter.__enter__()
        self._last = time.process_time()

    def on_fit_end(self, trainer: Trainer) -> None:
        """Stop the timers; the times are the means of a step, and Python is the rest."""
        self._meter.__exit__(None, None, None)
        measured = self.seconds[self._plain :]
        rest = sum(measured) - sum(self.times.values())
        self.times[PYTHON] = max(0.0, rest)
        self.times = Counter({name: x / len(measured) for name, x in self.times.items()})


def peak(repeats: int = 5) -> float:
    """Return the operations per second of the best `ops.linear` of float32 matrices."""
    best = 0.0
    for size in GEMM_SIZES:
        x = ops.random.normal((size, size))
        ops.linear(x, x)
        for _ in range(repeats):
            start = time.process_time()
            ops.linear(x, x)
            best = max(best, 2 * size**3 / (time.process_time() - start))
    return best


@contextlib.contextmanager
def timed_tables(backend: str, trainer: Trainer) -> Iterator[Times]:
    """Measure native functions, VJP rules on native arrays, and the update of parameters."""
    times: Times = Counter()

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                times[name] += time.thread_time() - start

        return call

    trainer.optimizer.step = timed("optimizer", trainer.optimizer.step)  # type: ignore[method-assign]
    tables: list[tuple[dict[str, Any], dict[str, Any]]] = []
    rules: list[tuple[Any, Any]] = []
    for op in OPS.values():
        scalars = [
            each for side in (op.left, op.right) for each in (side.floats, side.small, side.wide)
        ]
        for table in (op.kernels, *scalars) if backend in op.natives else ():
            tables.append((table, dict(table)))
            for tag, (native, result) in list(table.items()):
                if tag.startswith(f"{backend}:"):
                    table[tag] = timed(op.name, native), result
        if op.vjps is not None and op.vjps.arithmetic is not None:
            rules.append((op.vjps, op.vjps.arithmetic))
            name = f"{op.name} backward"
            op.vjps.arithmetic = tuple(timed(name, part) for part in op.vjps.arithmetic)
    try:
        yield times
    finally:
        for table, before in tables:
            table.update(before)
        for rule, parts in rules:
            rule.arithmetic = parts
        del trainer.optimizer.step


@contextlib.contextmanager
def torch_profile(backend: str, trainer: Trainer) -> Iterator[Times]:
    """Measure the self time of torch's ops, with its own profiler."""
    from torch.profiler import ProfilerActivity, profile

    times: Times = Counter()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        yield times
    for event in profiler.key_averages():
        times[event.key.removeprefix("aten::")] += event.self_cpu_time_total * 1e-6


METERS = {"numpy": timed_tables, "torch": torch_profile}


def measure(run: RunConfig, backend: str, steps: int) -> Measurement:
    """Train a run's model for a few steps, without and with timers."""
    task = build("tasks", run.task)
    model = make_model(run)
    trainer = make_trainer(run, model, task.vocab_size)
    batch_size = min(run.batch_size, len(task))
    clock = Clock(METERS[backend](backend, trainer), WARM_UP + steps)
    trainer.callbacks.append(clock)
    timed = max(2, steps // 4)
    trainer.fit(task.train, steps=WARM_UP + steps + timed, batch_size=batch_size)
    batch = tuple(map(array, task.train.batch(list(range(batch_size)))))
    parts = batches.split(batch, True)
    if takes_positions(model):
        parts = read_parts(parts, trainer.loss)
    flops = BACKWARD_FACTOR * count_flops(model, *parts.inputs, **parts.named)
    return Measurement(run, min(clock.seconds[WARM_UP : WARM_UP + steps]), flops, clock.times)


def report(name: str, measured: list[Measurement], rate: float) -> tuple[float, float]:
    """Print an architecture's table; return the seconds and the operations of its runs."""
    steps = sum(each.run.steps for each in measured)
    seconds = sum(each.run.steps * each.seconds for each in measured)
    flops = sum(each.run.steps * each.flops for each in measured)
    times: Times = Counter()
    for each in measured:
        for op, value in each.times.items():
            times[op] += each.run.steps * value
    total = sum(times.values())
    print(
        f"\n{name}: {1e3 * seconds / steps:.1f} ms a step, {seconds:.0f} s for {steps} steps, "
        f"{flops / steps / 1e6:.0f} MFLOP a step, {100 * flops / seconds / rate:.1f} % of peak"
    )
    for each in measured:
        share = 100 * each.flops / each.seconds / rate
        print(f"    {each.run.task.component:40} {1e3 * each.seconds:8.1f} ms {share:6.1f} %")
    rows = times.most_common(11)
    rows.append(("all others", total - sum(value for _, value in rows)))
    for op, value in rows:
        mean = 1e3 * seconds / steps * value / total
        print(f"  {op:42} {mean:8.2f} ms {100 * value / total:6.1f} %")
    return seconds, flops


def profile_backend(backend: str, options: argparse.Namespace) -> None:
    """Measure and print all architectures on a backend."""
    ember_ml.set_backend(backend)
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
    runtime.load(backend)
    names = task_names(options.tasks)
    patterns = [architecture(pattern) for pattern in options.architectures]
    runs = make_runs(get_scale(options.scale), patterns, names, [0])
    rate = peak()
    measured: dict[str, list[Measurement]] = {each.name: [] for each in patterns}
    for run in runs:
        measured[run.architecture].append(measure(run, backend, options.steps))
        rate = max(rate, peak(2))
    print(f"\n== {backend}: matrix product {rate / 1e9:.1f} GFLOP/s, one thread, CPU time")
    results = [report(name, group, rate) for name, group in measured.items()]
    seconds, flops = (sum(values) for values in zip(*results, strict=True))
    print(
        f"\n{backend}: {len(runs)} runs, {seconds:.0f} s of training steps, "
        f"{flops / 1e12:.2f} TFLOP, {100 * flops / seconds / rate:.1f} % of peak"
    )


def main() -> None:
    """Profile the architectures on the chosen backends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "backends", nargs="*", metavar="backend", help="numpy, torch; default: both"
    )
    parser.add_argument("--steps", type=int, default=20, help="measured steps of each run")
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--architectures", nargs="*", default=list(ARCHITECTURES))
    options = parser.parse_args()
    for backend in options.backends or METERS:
        profile_backend(backend, options)


if __name__ == "__main__":
    main()
