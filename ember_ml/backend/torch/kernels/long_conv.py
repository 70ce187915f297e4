"""Long causal convolution in half precision as a Triton kernel; longer ones use cuFFT."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.torch.kernels.launching import fused, on_device

MAX_LENGTH = 512
"""Longest sequence: its DFT of 1024 elements fits the registers."""
_HALVES = (torch.float16, torch.bfloat16)


def takes(x: Tensor, kernel: Tensor) -> bool:
    """Return whether the kernel takes these arrays: half precision, not empty and not too long.

    Args:
        x: Input, (batch, channels, time).
        kernel: Filters, (channels, taps).
    """
    right = x.dtype in _HALVES and kernel.dtype is x.dtype
    return right and x.numel() > 0 and x.shape[2] <= MAX_LENGTH


def reference(x: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution as a sum over the taps, in plain torch.

    Args:
        x: Input, (batch, channels, time).
        kernel: Filters, (channels, taps).
    """
    y = torch.zeros_like(x)
    for lag in range(min(x.shape[2], kernel.shape[1])):
        shifted = torch.nn.functional.pad(x[..., : x.shape[2] - lag], (lag, 0))
        y = y + shifted * kernel[:, lag, None]
    return y


def apply(plain: Any, x: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution, like `reference`.

    Args:
        plain: The same function in ops that torch differentiates any number of times.
        x: Input, (batch, channels, time).
        kernel: Filters, (channels, taps).
    """
    return fused(forward, _run, pull, plain, x, kernel)


@torch.library.custom_op("ember_ml::triton_long_conv", mutates_args=())
def forward(x: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution."""
    y = x.new_empty(x.shape)
    _launch(x, kernel[:, : x.shape[2]], y, 0)
    return y


@torch.library.custom_op("ember_ml::triton_long_conv_backward", mutates_args=())
def backward(x: Tensor, kernel: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the input and of the filters: convolutions with g backward in time.

    Args:
        x: Input, (batch, channels, time).
        kernel: Filters, (channels, taps).
        g: Gradient of the output.
    """
    batch, channels, length = x.shape
    taps = min(length, kernel.shape[1])
    grad = x.new_empty(x.shape)
    _launch(g, kernel[:, :length], grad, 0, backward=True)
    sums = x.new_empty((batch, channels, taps), dtype=torch.float32)
    _launch(g, x, sums, channels * length, backward=True)
    of_kernel = kernel.new_zeros(kernel.shape)
    of_kernel[:, :taps] = sums.sum(0)
    return grad, of_kernel


def _launch(x: Tensor, h: Tensor, y: Tensor, h_batch: int, backward: bool = False) -> None:
    """Write the convolution of x with h; if `backward`, of x backward, in backward order."""
    from ember_ml.backend.torch.kernels.programs import long_conv as programs

    _, channels, length = x.shape
    size = 16 if length <= 128 else 32
    x, h = x.contiguous(), h.contiguous()
    with on_device(x):
        programs.convolve[(x.shape[0] * channels,)](
            *(x, h, *_matrices(size, x.dtype, x.device), y),
            *(channels, length, h.shape[-1], y.shape[2], h_batch, float(size)),
            X_REVERSED=backward,
            Y_REVERSED=backward,
            M=size,
            num_warps=1 if size == 16 else 4,
        )


@functools.lru_cache(maxsize=16)
def _matrices(size: int, dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    """Return the unitary DFT matrix of a size, and the twiddle factors of its square."""
    n = torch.arange(size, dtype=torch.float64, device=device)
    products = n[:, None] * n
    angles = products * (2 * math.pi / size)
    unit = [f(angles).div(math.sqrt(size)).to(dtype) for f in (torch.cos, torch.sin)]
    turns = products * (2 * math.pi / size**2)
    return [*unit, turns.cos().float(), -turns.sin().float()]


def _run(x: Tensor, kernel: Tensor) -> tuple[Tensor, None]:
    return forward(x, kernel), None


def pull(operands: Any, _: Any, g: Tensor) -> list[Tensor]:
    """Return the gradients of the operands."""
    return list(backward(*operands, g))


@forward.register_fake
def _(x: Tensor, kernel: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@backward.register_fake
def _(x: Tensor, kernel: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), kernel.new_empty(kernel.shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _pull(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    return backward(*ctx.saved_tensors, g)


forward.register_autograd(_pull, setup_context=_save)
