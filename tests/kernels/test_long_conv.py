"""Long convolutions in half precision. The interpreter cannot multiply matrices of bfloat16."""

from __future__ import annotations

import pytest
import torch

from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.long_convolution import long_conv
from tests.kernels.comparing import Recorder


@pytest.mark.parametrize(
    ("length", "taps"),
    [(1, 1), (7, 3), (63, 63), (64, 64), (65, 200), (100, 100), (128, 128), (257, 257), (512, 512)],
)
def test_values_and_gradients(length, taps):
    x = torch.randn(2, 3, length).half().transpose(0, 1).contiguous().transpose(0, 1)
    kernel = (torch.randn(3, taps) / taps**0.5).half()
    x, kernel = x.requires_grad_(), kernel.requires_grad_()
    wide = [t.detach().double().requires_grad_() for t in (x, kernel)]
    expected = kernels.long_conv.reference(*wide)
    g = torch.randn(expected.shape).half()
    with Recorder() as record:
        y = long_conv(x, kernel)
        grads = torch.autograd.grad(y, [x, kernel], g)
    assert {"triton_long_conv", "triton_long_conv_backward"} <= set(record.names)
    for got, right in zip(
        (y, *grads), (expected, *torch.autograd.grad(expected, wide, g.double())), strict=True
    ):
        scale = right.abs().max().clamp(min=1.0)
        assert ((got.double() - right).abs().max() / scale).item() < 4e-3


def test_others_use_the_fft():
    for x in (torch.randn(1, 2, 600).half(), torch.randn(1, 2, 300)):
        with Recorder() as record:
            long_conv(x, x[0])
        assert not any(name.startswith("triton") for name in record.names)


def test_registration():
    x, kernel = torch.randn(1, 2, 20).half(), torch.randn(2, 30).half()
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(kernels.long_conv.forward, (x, kernel), test_utils=checks)
    torch.library.opcheck(kernels.long_conv.backward, (x, kernel, x), test_utils=checks)
