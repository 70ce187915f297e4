"""Sources of the Metal kernels, compiled as C++; on a Mac, the kernels themselves."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from ember_ml.backend.mlx import kernels
from ember_ml.backend.mlx.ops.recurrence import linear_recurrence
from ember_ml.backend.mlx.ops.selective_scan import selective_scan

HEADER = """
#include <cmath>
#include <cstddef>
typedef unsigned int uint;
namespace metal { using std::exp; }
struct Position { uint x; };
"""
FLOATS = ctypes.POINTER(ctypes.c_float)


def build(folder, body, names, output, constant):
    """Return the body as a function of arrays that writes the output, thread by thread."""
    given = ", ".join(f"const float* {name}" for name in names)
    source = f"""{HEADER}
    static void thread(Position thread_position_in_grid, {given}, const uint* sizes,
                       float* {output}) {{ {constant} {body} }}
    extern "C" void run(uint threads, {given}, const uint* sizes, float* {output}) {{
        for (uint x = 0; x < threads; ++x)
            thread(Position{{x}}, {", ".join(names)}, sizes, {output});
    }}"""
    path, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
    path.write_text(source)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", str(path), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).run

    def run(threads, arrays, sizes):
        pointers = [x.ctypes.data_as(FLOATS) for x in arrays]
        out = np.full(arrays[0].shape, np.nan, np.float32)
        numbers = (ctypes.c_uint * len(sizes))(*sizes)
        function(threads, *pointers, numbers, out.ctypes.data_as(FLOATS))
        return out

    return run


def array(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def decay(*shape):
    return 1.0 / (1.0 + np.exp(-array(*shape)))


def scan_operands(time):
    wide, narrow = (2, time, 5), (2, time, 3)
    return [array(*wide), decay(*wide), -decay(5, 3), array(*narrow), array(*narrow), array(5)]


@pytest.mark.parametrize("reverse", [False, True])
def test_source_of_the_linear_recurrence(reverse, tmp_path):
    constant = f"const bool REVERSE = {str(reverse).lower()};"
    names = ("a", "b", "h0")
    run = build(tmp_path, kernels.LINEAR_RECURRENCE, names, "h", constant)
    for time in (1, 7, 64, 257):
        a, b, h0 = decay(2, time, 3), array(2, time, 3), array(2, 3)
        got = run(8, [a, b, h0], [6, 3, time])  # threads beyond the last lane do nothing
        state, order = h0.astype(np.float64), range(time)
        for t in reversed(order) if reverse else order:
            state = a[:, t] * state + b[:, t]
            np.testing.assert_allclose(got[:, t], state, rtol=1e-5, atol=1e-5)


def test_source_of_the_selective_scan(tmp_path):
    names = ("u", "dt", "a", "b", "c", "d")
    run = build(tmp_path, kernels.SELECTIVE_SCAN, names, "y", "const uint STATES = 3;")
    for time in (1, 7, 64, 257):
        u, dt, a, b, c, d = operands = scan_operands(time)
        got = run(16, operands, [2, time, 5])
        state = np.zeros((2, 5, 3))
        for t in range(time):
            step = dt[:, t, :, None]
            state = np.exp(step * a) * state + step * u[:, t, :, None] * b[:, t, None]
            y = (state * c[:, t, None]).sum(-1) + d * u[:, t]
            np.testing.assert_allclose(got[:, t], y, rtol=1e-4, atol=1e-4)


def test_kernels_are_built_up_to_the_device():
    """Without Metal, MLX builds a kernel and refuses to run it."""
    if mx.metal.is_available():
        assert kernels.in_use() == (mx.default_device().type == mx.DeviceType.gpu)
        return
    assert not kernels.in_use()
    ones = mx.ones((2, 3, 4))
    with pytest.raises(RuntimeError, match="No Metal back-end"):
        kernels.linear_recurrence(ones, ones, ones[:, 0], 1, False)
    with pytest.raises(RuntimeError, match="No Metal back-end"):
        kernels.selective_scan(
            ones, ones, ones[0, :, :2].T, ones[..., :2], ones[..., :2], ones[0, 0]
        )


@pytest.mark.skipif(not mx.metal.is_available(), reason="needs a Metal device")
def test_kernels_on_a_metal_device():
    """Compare values and gradients of both kernels with those of the CPU."""
    operands = [mx.array(x) for x in scan_operands(100)]
    a, b, h0 = mx.array(decay(2, 100, 3)), mx.array(array(2, 100, 3)), mx.array(array(2, 3))

    def total(*given):
        y = selective_scan(*given)
        return (y * y).sum()

    def states(*given):
        h, final = linear_recurrence(*given)
        return (h * h).sum() + final.sum()

    results = []
    for device in (mx.DeviceType.gpu, mx.DeviceType.cpu):
        with mx.stream(device):
            mx.set_default_device(device)
            grads = mx.grad(total, list(range(6)))(*operands)
            more = mx.grad(states, [0, 1, 2])(a, b, h0)
            results.append([np.array(x) for x in (selective_scan(*operands), *grads, *more)])
    mx.set_default_device(mx.DeviceType.gpu)
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)
