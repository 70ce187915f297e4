"""Tests of long and short causal convolutions against direct ones, and of their kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from ember_ml import GradientTape, ops
from ember_ml.backend.torch import causal_convolution, gated_convolution, long_convolution
from ember_ml.nn import tensor
from ember_ml.nn.layers.sequence_mixing.fft_conv import KERNELS, FFTConv, fft_conv, long_conv
from ember_ml.nn.layers.sequence_mixing.hyena import Hyena
from ember_ml.nn.layers.sequence_mixing.short_conv import ShortConv
from ember_ml.ops.signal.long_convolution import DIRECT

LENGTHS = (1, 2, 63, 100)


def direct(x, kernel, skip=None):
    """Compute the convolution in float64 by its definition."""
    x, kernel = np.float64(x), np.float64(kernel)
    y = np.stack(
        [
            np.stack(
                [np.convolve(row, taps)[: len(row)] for row, taps in zip(one, kernel, strict=True)]
            )
            for one in x
        ]
    )
    return y if skip is None else y + np.float64(skip)[:, None] * x


def drawn(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("form", [fft_conv, long_conv])
@pytest.mark.parametrize("length", LENGTHS)
def test_matches_definition(backend, form, length):
    for taps in {length, 1, length + 5}:
        x, kernel, skip = drawn((length // 2 + 1, 3, length), (3, taps), (3,))
        actual = form(*map(tensor.array, (x, kernel, skip)))
        np.testing.assert_allclose(actual.numpy(), direct(x, kernel, skip), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shape", [(1, 2, 40), (30, 2, 40), (1, 2, DIRECT + 9)])
def test_short_batched_and_long_sequences(backend, shape):
    x, kernel = drawn(shape, shape[1:])
    actual = long_conv(tensor.array(x), tensor.array(kernel))
    np.testing.assert_allclose(actual.numpy(), direct(x, kernel), rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("form", [fft_conv, long_conv])
def test_gradients(backend, form):
    x, kernel, skip, g = drawn((12, 3, 20), (3, 20), (3,), (12, 3, 20))
    sources = [tensor.array(v) for v in (x, kernel, skip)]
    with GradientTape() as tape:
        tape.watch(sources)
        y = form(*sources)
    actual = tape.gradient(y, sources, tensor.array(g))
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, kernel, skip)]
    padded = F.pad(leaves[0], (19, 0))
    out = (
        F.conv1d(padded, leaves[1].flip(1).unsqueeze(1), groups=3) + leaves[2][:, None] * leaves[0]
    )
    expected_gradients = torch.autograd.grad(out, leaves, torch.tensor(g, dtype=torch.float64))
    for gradient, expected_gradient in zip(actual, expected_gradients, strict=True):
        np.testing.assert_allclose(
            gradient.numpy(), expected_gradient.numpy(), rtol=1e-3, atol=1e-4
        )


def test_registered_device_kernel_is_used(backend, monkeypatch):
    calls = []

    def kernel(x, taps):
        calls.append(x.shape)
        matrices = ops.causal_toeplitz(taps, x.shape[-1])
        return ops.swapaxes(ops.matmul(ops.swapaxes(x, 0, 1), matrices), 0, 1)

    layer, u = Hyena(3, max_length=7), ops.ones((2, 7, 3))
    mixed = layer(u).numpy()
    x, taps = (tensor.array(v) for v in drawn((2, 3, 7), (3, 7)))
    without = fft_conv(x, taps).numpy()
    device = str(x.device).partition(":")[0]
    monkeypatch.setitem(KERNELS, device, kernel)
    for form in (fft_conv, long_conv):
        np.testing.assert_allclose(form(x, taps).numpy(), without, rtol=1e-4, atol=1e-5)
    assert calls == [(2, 3, 7)] * 2
    np.testing.assert_allclose(layer(u).numpy(), mixed, rtol=1e-4, atol=1e-5)
    assert calls.pop() == (2, 12, 7)
    monkeypatch.setitem(KERNELS, "elsewhere", KERNELS.pop(device))
    np.testing.assert_array_equal(fft_conv(x, taps).numpy(), without)
    assert len(calls) == 2


def test_no_kernels_are_registered():
    assert not KERNELS


def test_fft_conv_layer(backend):
    layer = FFTConv(3, max_length=8)
    (x,) = drawn((2, 20, 3))
    kernel, skip = layer.weight.numpy(), layer.skip.numpy()
    expected_gradients = direct(x.swapaxes(1, 2), kernel, skip).swapaxes(1, 2)
    np.testing.assert_allclose(
        layer(tensor.array(x)).numpy(), expected_gradients, rtol=1e-4, atol=1e-5
    )
    y, _ = layer.unroll(tensor.array(x))
    np.testing.assert_allclose(y.numpy(), expected_gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("taps", [1, 2, 31, 32, 33, 70, 129])
def test_online_convolution(backend, taps):
    layer = FFTConv(3, max_length=taps).eval()
    (x,) = drawn((2, 300, 3))
    expected = direct(x.swapaxes(1, 2), layer.weight.numpy(), layer.skip.numpy()).swapaxes(1, 2)
    inputs = tensor.array(x)
    y, state = layer.unroll(inputs[:, :150])
    part, state = layer(inputs[:, 150:173], state=state)  # starts a new frame
    rest, _ = layer.unroll(inputs[:, 173:], state)
    whole = np.concatenate([each.numpy() for each in (y, part, rest)], axis=1)
    np.testing.assert_allclose(whole, expected, rtol=1e-4, atol=2e-5)


def test_online_convolution_reads_few_inputs(monkeypatch):
    """Inputs that all convolutions of a step read grow like log^2, not like the taps."""
    read = []
    fft_conv = ops.fft_conv
    monkeypatch.setattr(
        ops, "fft_conv", lambda x, *rest: (read.append(x.shape[2]), fft_conv(x, *rest))[1]
    )
    per_step = []
    for taps in (1024, 4096):
        layer = FFTConv(1, max_length=taps).eval()
        read.clear()
        layer.unroll(ops.ones((1, taps, 1)))
        per_step.append(sum(read) / taps)
    assert per_step[1] < 1.5 * per_step[0] < 8


def test_short_conv_layer(backend):
    layer = ShortConv(5, kernel_size=3, activation="silu")
    (x,) = drawn((2, 11, 5))
    weight, bias = (torch.tensor(v.numpy()) for v in (layer.taps.weight, layer.taps.bias))
    padded = F.pad(torch.tensor(x).mT, (2, 0))
    expected_gradients = F.silu(F.conv1d(padded, weight.unsqueeze(1), bias, groups=5)).mT
    np.testing.assert_allclose(
        layer(tensor.array(x)).numpy(), expected_gradients, rtol=1e-4, atol=1e-5
    )


def leaf(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def check_kernel(call, plain, operands):
    """Check values, gradients and second derivatives."""
    torch.testing.assert_close(call(*operands), plain(*operands))
    assert torch.autograd.gradcheck(call, operands, check_batched_grad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, operands, fast_mode=True)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_blocked_short_convolution_on_torch(monkeypatch, last, bias):
    monkeypatch.setattr(causal_convolution, "_LARGE", 0)
    monkeypatch.setattr(causal_convolution, "_BLOCK", 60)
    x = leaf(5, 7, 4).mT.detach().requires_grad_() if last else leaf(5, 4, 7)
    operands = (x, leaf(4, 3), leaf(4)) if bias else (x, leaf(4, 3))

    def plain(x, weight, bias=None):
        return causal_convolution._plain(x, weight, bias)

    check_kernel(causal_convolution.causal_conv1d, plain, operands)


SHAPES = {"products": (4, 7, 7), "transforms": (2, 7, 7), "few taps": (4, 7, 3), "many": (2, 7, 9)}


@pytest.mark.parametrize("name", SHAPES)
def test_blocked_long_convolution_on_torch(monkeypatch, name):
    batch, length, taps = SHAPES[name]
    monkeypatch.setattr(long_convolution, "_LARGE", 0)
    monkeypatch.setattr(long_convolution, "BLOCK", 2 * batch * length)
    assert long_convolution.is_direct(batch, length) == (batch == 4)
    operands = leaf(batch, 4, length), leaf(4, taps)
    check_kernel(long_convolution.long_conv, long_convolution.plain, operands)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_blocked_gated_convolution_on_torch(monkeypatch, name, masked):
    batch, length, taps = SHAPES[name]
    monkeypatch.setattr(gated_convolution, "_LARGE", 0)
    monkeypatch.setattr(long_convolution, "BLOCK", 2 * batch * length)
    mask = torch.rand(batch, length) > 0.3 if masked else None
    padding = None if mask is None else ~mask
    operands = leaf(batch, 6, length), leaf(12, 3), leaf(12), leaf(4, taps)  # shared by two
    check_kernel(
        lambda *given: gated_convolution.gated_long_conv(*given, mask),
        lambda *given: gated_convolution._plain(padding, *given),
        operands,
    )
    x, weight, bias = (a.detach() for a in operands[:3])
    torch.testing.assert_close(
        gated_convolution.gated_conv_inputs(x, weight, bias, mask),
        gated_convolution._parts(padding, x, weight, bias)[1],
    )


def test_bad_shapes(backend):
    layer = FFTConv(3, max_length=8)
    with pytest.raises(ValueError, match=r"FFTConv: expected an input of shape \(batch, time, 3\)"):
        layer(ops.ones((2, 5, 4)))
    with pytest.raises(ValueError, match="mask"):
        layer(ops.ones((2, 5, 3)), ops.ones((2, 4)))
    with pytest.raises(ValueError, match="kernel_size"):
        ShortConv(3, kernel_size=0)
