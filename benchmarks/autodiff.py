"""Cost of gradients in Ember compared with the frameworks' own autodiff, in one run.

Each figure is the CPU time of the best of many repetitions. The libraries take turns, so that noise
affects all of them equally.

    python benchmarks/autodiff.py [tape-mlx | value-and-grad-torch | numpy | linear-recurrence ...]
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ember_ml as ember
from ember_ml import ops
from ember_ml._core import tree
from ember_ml.nn import tensor

Contestant = Callable[[], Any]


def race(contestants: dict[str, Contestant], repeats: int = 30, calls: int = 1) -> dict[str, float]:
    """Return the best CPU time of each in ms, measured in turns after three warm-up rounds."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(repeats + 3):
        for name, run in contestants.items():
            start = time.process_time()
            for _ in range(calls):
                run()
            spent = (time.process_time() - start) / calls * 1e3
            if turn >= 3:
                best[name] = min(best[name], spent)
    return best


def report(title: str, times: dict[str, float], ours: str, peer: str, goal: str) -> None:
    """Print a line with the ratio."""
    ratio = times[ours] / times[peer]
    figures = ", ".join(f"{name} {value:.3f} ms" for name, value in times.items())
    print(f"{title}: {ratio:.2f}x the time of {peer} (or {1 / ratio:.2f}x as fast; goal {goal})")
    print(f"    {figures}")


def weights(sizes: list[int]) -> list[np.ndarray]:
    """Return a weight and a bias for each layer."""
    rng = np.random.default_rng(0)
    made = []
    for rows, columns in itertools.pairwise(sizes):
        made += [rng.standard_normal((rows, columns)) / rows**0.5, np.zeros(columns)]
    return [array.astype(np.float32) for array in made]


def batch(rows: int, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((rows, sizes[0])), rng.standard_normal((rows, sizes[-1]))
    return x.astype(np.float32), y.astype(np.float32)


def network(params: list[Any], x: Any, y: Any) -> Any:
    """Return the mean squared error of a tanh perceptron, in Ember."""
    for at in range(0, len(params), 2):
        x = ops.matmul(x, params[at]) + params[at + 1]
        x = ops.tanh(x) if at + 2 < len(params) else x
    return ops.mean(ops.square(x - y))


def tape_mlx() -> None:
    """Compare the tape on MLX with mx.value_and_grad."""
    import mlx.core as mx

    sizes = [128, 256, 256, 256, 256, 10]

    def direct(params: list[Any], x: Any, y: Any) -> Any:
        for at in range(0, len(params), 2):
            x = mx.matmul(x, params[at]) + params[at + 1]
            x = mx.tanh(x) if at + 2 < len(params) else x
        return mx.mean(mx.square(x - y))

    with ember.use_backend("mlx"):
        params = [ember.nn.Parameter(array) for array in weights(sizes)]
        x, y = map(tensor.array, batch(64, sizes))
        plain = [mx.array(array) for array in weights(sizes)]
        native = mx.value_and_grad(direct)
        through = ember.autodiff.value_and_grad(network)

        def with_tape() -> None:
            with ember.GradientTape() as tape:
                loss = network(params, x, y)
            grads = tape.gradient(loss, params)
            mx.eval(loss.native, [g.native for g in grads])

        def with_transform() -> None:
            loss, grads = through(params, x, y)
            mx.eval(loss.native, [g.native for g in grads])

        def by_hand() -> None:
            mx.eval(native(plain, x.native, y.native))

        times = race({"tape": with_tape, "value_and_grad": with_transform, "mlx": by_hand}, 100)
    report("tape on MLX, 20-op perceptron", times, "tape", "mlx", "at most 1.15x")
    report("value_and_grad on MLX", times, "value_and_grad", "mlx", "none")


def value_and_grad_torch() -> None:
    """Compare value_and_grad on torch with hand-written autograd, on one thread."""
    import torch

    def by_hand(params: list[Any], x: Any, y: Any) -> Any:
        for at in range(0, len(params), 2):
            x = torch.matmul(x, params[at]) + params[at + 1]
            x = torch.tanh(x) if at + 2 < len(params) else x
        loss = torch.mean(torch.square(x - y))
        return loss, torch.autograd.grad(loss, params)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    through = ember.autodiff.value_and_grad(network)
    for rows, width, goal, calls in ((256, 512, "at most 1.05x", 1), (8, 16, "none", 20)):
        sizes = [width] * 5
        with ember.use_backend("torch"):
            params = [tensor.array(array) for array in weights(sizes)]
            plain = [torch.tensor(array, requires_grad=True) for array in weights(sizes)]
            x, y = map(tensor.array, batch(rows, sizes))
            ours = functools.partial(through, params, x, y)
            theirs = functools.partial(by_hand, plain, x.native, y.native)
            times = race({"ember": ours, "torch": theirs}, 60, calls)
        report(
            f"value_and_grad on torch, {rows} x {width} x {width}", times, "ember", "torch", goal
        )
    torch.set_num_threads(threads)


def numpy() -> None:
    """Compare NumPy with HIPS autograd."""
    import autograd
    import autograd.numpy as anp

    def perceptron(params: list[Any], x: Any, y: Any) -> Any:
        for at in range(0, len(params), 2):
            x = anp.dot(x, params[at]) + params[at + 1]
            x = anp.tanh(x) if at + 2 < len(params) else x
        return anp.mean((x - y) ** 2)

    def softmaxes(x: Any, w: Any) -> Any:
        for _ in range(10):
            x = ops.softmax(ops.matmul(x, w), axis=-1) + x
        return ops.sum(x)

    def softmaxes_of_autograd(x: Any, w: Any) -> Any:
        for _ in range(10):
            z = anp.dot(x, w)
            e = anp.exp(z - anp.max(z, axis=-1, keepdims=True))
            x = e / anp.sum(e, axis=-1, keepdims=True) + x
        return anp.sum(x)

    def chain(namespace: Any, x: Any) -> Any:
        for _ in range(30):
            x = namespace.tanh(x * 1.1 + 0.1) * namespace.exp(-x)
        return namespace.sum(x)

    def compare(title: str, ours: Any, theirs: Any, arrays: Any, goal: str, calls: int) -> None:
        tensors = tree.map_leaves(tensor.array, arrays)
        mine = functools.partial(ember.autodiff.value_and_grad(ours), *tensors)
        other = functools.partial(autograd.value_and_grad(theirs), *arrays)
        times = race({"ember": mine, "autograd": other}, 60, calls)
        report(title, times, "ember", "autograd", goal)

    with ember.use_backend("numpy"):
        small, large = [16] * 9, [512] * 4
        three = "at least 3x as fast"
        arrays = (weights(small), *batch(8, small))
        compare("NumPy, perceptron 8 x 16 x 16", network, perceptron, arrays, three, 5)
        pair = (arrays[1], arrays[0][0])
        compare("NumPy, softmax 8 x 16", softmaxes, softmaxes_of_autograd, pair, three, 5)
        ours, theirs = functools.partial(chain, ops), functools.partial(chain, anp)
        line = (np.linspace(0, 1, 8, dtype=np.float32),)
        compare("NumPy, 181 elementwise ops of 8 numbers", ours, theirs, line, three, 5)
        arrays = (weights(large), *batch(256, large))
        goal = "at least 1.3x as fast"
        compare("NumPy, perceptron 256 x 512 x 512", network, perceptron, arrays, goal, 1)


def linear_recurrence() -> None:
    """Compare the recurrence with a loop under torch's autograd, on one thread."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    shape = (16, 1024, 256)
    a = torch.rand(shape)
    b = torch.randn(shape)

    def loop(a: Any, b: Any, read: Callable[[Any], Any]) -> Any:
        h, found = torch.zeros_like(b[:, 0]), []
        for factor, entry in zip(read(a), read(b), strict=True):
            h = factor * h + entry
            found.append(h)
        return torch.stack(found, 1).sum()

    def by_hand(read: Callable[[Any], Any]) -> None:
        leaves = [a.clone().requires_grad_(), b.clone().requires_grad_()]
        torch.autograd.grad(loop(*leaves, read), leaves)

    def indexed(x: Any) -> list[Any]:
        return [x[:, t] for t in range(x.shape[1])]

    def unbound(x: Any) -> Any:
        return x.unbind(1)

    with ember.use_backend("torch"):
        through = ember.autodiff.value_and_grad(
            lambda a, b: ops.sum(ops.linear_recurrence(a, b)[0]), (0, 1)
        )
        x, y = tensor.array(a), tensor.array(b)
        times = race({"ember": lambda: through(x, y), "torch loop": lambda: by_hand(indexed)}, 3)
        closer = race({"ember": lambda: through(x, y), "unbound loop": lambda: by_hand(unbound)})
    title = "linear_recurrence (16, 1024, 256), forward and backward"
    report(title, times, "ember", "torch loop", "at least 5x as fast")
    report(f"{title}, steps taken by one unbind", closer, "ember", "unbound loop", "none")
    torch.set_num_threads(threads)


QUESTIONS = {
    "tape-mlx": tape_mlx,
    "value-and-grad-torch": value_and_grad_torch,
    "numpy": numpy,
    "linear-recurrence": linear_recurrence,
}

if __name__ == "__main__":
    for question in sys.argv[1:] or QUESTIONS:
        QUESTIONS[question]()
