"""C kernels against the code without them, and against torch's own functions.

One thread, forward and backward pass, float32. Each row is measured in one process, where the
variants take turns; a time is the best CPU time of many calls. A turn has four calls, because the
first ones run with the caches and the freed memory of another variant. The columns are:

- ms: with the C kernels.
- without: time without the kernels (`EMBER_ML_NATIVE=0`) over the time with them.
- before: with --before, the time with the Ember ML of another source tree, such as a worktree of an
  earlier commit, over the time with the kernels. A second process measures it in turns with the
  others.
- peer: time with the kernels over that of the named peer: torch's own functions, a loop in torch,
  snnTorch, ncps, or the same model with attention.

    python benchmarks/kernels.py [--repeats 30] [--before TREE] [rows ...]

A row is an entry of `CASES`: a function that returns the call to measure and the call of the peer.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import torch
from recurrent_kernels import ROWS, ember_call, torch_call
from source_trees import TreeProcess
from torch.nn import functional as F

from ember_ml import autodiff, ops
from ember_ml.backend import use_backend
from ember_ml.nn import tensor

Call = Callable[[], object]


class Case(NamedTuple):
    """A row: the call with and without kernels, and the peer's call."""

    call: Call
    peer: Call
    peer_name: str = "torch"


CASES: dict[str, Callable[[], Case]] = {}
"""Name of each row, and the function that prepares it."""


def row(name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Add a row under a name, as a decorator."""

    def add(make: Callable[[], Case]) -> Callable[[], Case]:
        CASES[name] = make
        return make

    return add


def numpy_call(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """Return a call of the function and its gradient on the NumPy backend."""
    with use_backend("numpy"):
        operands = [tensor.array(x) for x in arrays]
        g = tensor.array(_normal(*function(*operands).shape))

    def call() -> object:
        _, pull = autodiff.vjp(function, *operands)
        return pull(g)

    return call


def _normal(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(0).normal(size=shape), np.float32)


@row("numpy softmax (4096, 256)")
def _softmax() -> Case:
    x = _normal(4096, 256)
    return Case(numpy_call(ops.softmax, x), torch_call(lambda x: F.softmax(x, -1), x))


@row("numpy log_softmax (4096, 256)")
def _log_softmax() -> Case:
    x = _normal(4096, 256)
    return Case(numpy_call(ops.log_softmax, x), torch_call(lambda x: F.log_softmax(x, -1), x))


@row("numpy layer_norm (4096, 256)")
def _layer_norm() -> Case:
    arrays = _normal(4096, 256), _normal(256), _normal(256)
    return Case(
        numpy_call(ops.layer_norm, *arrays),
        torch_call(lambda x, w, b: F.layer_norm(x, (256,), w, b), *arrays),
    )


@row("numpy rms_norm (4096, 256)")
def _rms_norm() -> Case:
    arrays = _normal(4096, 256), _normal(256)
    return Case(
        numpy_call(ops.rms_norm, *arrays),
        torch_call(lambda x, w: F.rms_norm(x, (256,), w, 1e-6), *arrays),
    )


@row("numpy gelu (1048576)")
def _gelu() -> Case:
    x = _normal(1 << 20)
    return Case(numpy_call(ops.gelu, x), torch_call(F.gelu, x))


@row("numpy silu (1048576)")
def _silu() -> Case:
    x = _normal(1 << 20)
    return Case(numpy_call(ops.silu, x), torch_call(F.silu, x))


@row("numpy cross_entropy (4096, 256)")
def _cross_entropy() -> Case:
    x, targets = _normal(4096, 256), np.random.default_rng(1).integers(0, 256, 4096)
    classes = torch.from_numpy(targets)
    with use_backend("numpy"):
        known = tensor.array(targets)
    return Case(
        numpy_call(lambda x: ops.cross_entropy(x, known), x),
        torch_call(lambda x: F.cross_entropy(x, classes), x),
    )


@row("numpy swiglu (4096, 512)")
def _swiglu() -> Case:
    def peer(x: torch.Tensor) -> torch.Tensor:
        gate, value = x.chunk(2, -1)
        return F.silu(gate) * value

    x = _normal(4096, 512)
    return Case(numpy_call(ops.swiglu, x), torch_call(peer, x))


@row("numpy causal_conv1d (32, 256, 128), 4 taps")
def _causal_conv() -> Case:
    def peer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.conv1d(F.pad(x, (3, 0)), weight.unsqueeze(1), bias, groups=256)

    arrays = _normal(32, 256, 128), _normal(256, 4), _normal(256)
    return Case(numpy_call(ops.causal_conv1d, *arrays), torch_call(peer, *arrays))


@row("numpy attention (8, 8, 128, 32), causal")
def _attention() -> Case:
    arrays = [_normal(8, 8, 128, 32) for _ in range(3)]
    return Case(
        numpy_call(lambda *x: ops.scaled_dot_product_attention(*x, causal=True), *arrays),
        torch_call(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), *arrays),
    )


@row("torch linear (4096, 128 -> 704)")
def _linear() -> Case:
    arrays = _normal(4096, 128), _normal(704, 128)
    call = ember_call("torch", lambda *x: (ops.linear(*x),), *arrays)
    return Case(call, torch_call(F.linear, *arrays))


def _softplus_linear(backend: str) -> Case:
    arrays = _normal(32, 48, 4), _normal(128, 4), _normal(128)
    return Case(
        ember_call(backend, lambda *x: (ops.softplus_linear(*x),), *arrays),
        torch_call(lambda *x: F.softplus(F.linear(*x)), *arrays),
    )


def _rotary_heads(backend: str) -> Case:
    angles = torch.arange(48)[:, None] * 10000.0 ** (-torch.arange(8) / 8)
    cos, sin = angles.cos(), angles.sin()

    def peer(x: torch.Tensor) -> torch.Tensor:
        heads = x.unflatten(2, (12, 16)).transpose(1, 2)
        first, second = heads[:, :8].chunk(2, -1)
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
        return torch.cat([turned, heads[:, 8:]], 1)

    x = _normal(32, 48, 192)
    call = ember_call(backend, lambda x: (ops.concat(ops.rotary_heads(x, 4), axis=1),), x)
    return Case(call, torch_call(peer, x))


def _gated_long_conv(backend: str) -> Case:
    def filtered(x: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> torch.Tensor:
        padded = F.pad(x, (weight.shape[1] - 1, 0))
        return F.conv1d(padded, weight.unsqueeze(1), bias, groups=len(weight))

    def peer(x: torch.Tensor, weight: Any, bias: Any, kernel: torch.Tensor) -> torch.Tensor:
        query, key, value = filtered(x.repeat(1, 4, 1), weight, bias).chunk(3, 1)
        return query * filtered(key * value, kernel.flip(1))

    arrays = _normal(32, 192, 48), _normal(768, 3), _normal(768), _normal(256, 48)
    call = ember_call(backend, lambda *x: (ops.gated_long_conv(*x),), *arrays)
    return Case(call, torch_call(peer, *arrays))


for _backend in ("torch", "numpy"):
    CASES[f"{_backend} softplus_linear (1536, 4 -> 128)"] = partial(_softplus_linear, _backend)
    CASES[f"{_backend} rotary_heads (32, 48, 192), 4 heads"] = partial(_rotary_heads, _backend)
    CASES[f"{_backend} gated_long_conv (32, 192, 48)"] = partial(_gated_long_conv, _backend)


def _recurrent(make: Callable[[], tuple[Call, Call, str]]) -> Callable[[], Case]:
    return lambda: Case(*make())


CASES.update({name: _recurrent(make) for name, make in ROWS.items()})


def _time(call: Call) -> float:
    """Return the time of the fastest call of a turn."""
    best = float("inf")
    for _ in range(4):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


class Times(NamedTuple):
    """Best times of a row."""

    kernels: float
    without: float
    peer: float
    before: float | None

    def __str__(self) -> str:
        ratios = [f"{self.without / self.kernels:8.1f}x"]
        if self.before is not None:
            known = math.isfinite(self.before)
            ratios.append(f"{self.before / self.kernels:8.1f}x" if known else f"{'-':>9}")
        return " ".join(
            [f"{1e3 * self.kernels:8.3f}", *ratios, f"{self.kernels / self.peer:6.2f}x"]
        )


def measure(name: str, repeats: int, tree: Path | None) -> tuple[Times, str]:
    """Return the times of a row, measured in turns, and the name of the peer."""
    from ember_ml import _native

    other = None if tree is None else TreeProcess(tree, __file__, "--serve", name)
    case = CASES[name]()
    best = [float("inf")] * 4
    for _ in range(repeats):
        best[0] = min(best[0], _time(case.call))
        with _native.switched_off():
            best[1] = min(best[1], _time(case.call))
        best[2] = min(best[2], _time(case.peer))
        if other is not None:  # an empty answer: the other package has no such op
            best[3] = min(best[3], float(other.ask() or "inf"))
    if other is not None:
        other.close()
    times = Times(best[0], best[1], best[2], None if other is None else best[3])
    return times, case.peer_name


def serve(name: str) -> None:
    """Print the CPU time of a call of a row for each line of the standard input."""
    try:
        call = CASES[name]().call
    except AttributeError:  # an op that this package does not have
        return
    for _ in sys.stdin:
        print(_time(call), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="words in the names of the rows to measure")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--before", type=Path, help="source tree to compare with")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.serve:
        serve(options.serve)
        return
    from ember_ml import _native

    _native.keep_freed_memory()
    print(f"{_native.status()}, one thread, forward and backward, CPU time\n")
    columns = ["without", "before"] if options.before else ["without"]
    print(f"{'':44} {'ms':>8} {' '.join(f'{each:>9}' for each in columns)} {'peer':>7}")
    for name in CASES:
        if not options.rows or any(word in name for word in options.rows):
            times, peer = measure(name, options.repeats, options.before)
            print(f"{name:44} {times} {peer}", flush=True)


if __name__ == "__main__":
    main()
