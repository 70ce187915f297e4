"""Short causal convolution of single channels, with or without SiLU, as Triton kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ember_ml.backend.torch.kernels.launching import cdiv, fused, new_sums, on_device

MAX_TAPS = 16
TIME, CHANNELS = 32, 32
"""Tile of a program instance."""


def takes(x: Tensor, weight: Tensor) -> bool:
    """Return whether the kernels take these shapes: not empty, with few taps.

    Args:
        x: Input, (batch, channels, time).
        weight: Filters, (channels, taps).
    """
    return x.numel() > 0 and 0 < weight.shape[1] <= MAX_TAPS


def reference(x: Tensor, weight: Tensor, bias: Tensor | None, silu: bool) -> Tensor:
    """Return the convolution, in plain torch.

    Args:
        x: Input, (batch, channels, time).
        weight: Filters, (channels, taps); the last tap applies to the current element.
        bias: (channels,). None: none.
        silu: Whether SiLU follows.
    """
    padded = F.pad(x, (weight.shape[1] - 1, 0))
    y = F.conv1d(padded, weight.unsqueeze(1), bias, groups=len(weight))
    return F.silu(y) if silu else y


def apply(x: Tensor, weight: Tensor, bias: Tensor | None, silu: bool) -> Tensor:
    """Return the convolution. The arguments are those of `reference`."""
    options: dict[str, Any] = {"silu": silu}
    return fused(
        partial(forward, **options),
        partial(_run, **options),
        partial(pull, **options),
        partial(reference, **options),
        *(x, weight, bias),
    )


@torch.library.custom_op("ember_ml::triton_causal_conv1d", mutates_args=())
def forward(x: Tensor, weight: Tensor, bias: Tensor | None, silu: bool) -> Tensor:
    """Return the convolution, in the memory layout of x."""
    from ember_ml.backend.torch.kernels.programs import causal_conv1d as programs

    y = torch.empty_like(x)
    with on_device(x):
        programs.convolve[_grid(x)](
            *(x, weight.contiguous(), None if bias is None else bias.contiguous(), y),
            *(x.shape[2], x.shape[1], *x.stride(), *y.stride()),
            HAS_BIAS=bias is not None,
            SILU=silu,
            **_tile(weight),
        )
    return y


@torch.library.custom_op("ember_ml::triton_causal_conv1d_backward", mutates_args=())
def backward(
    x: Tensor, weight: Tensor, bias: Tensor | None, g: Tensor, silu: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and bias.

    Args:
        x: Input, (batch, channels, time).
        weight: Filters, (channels, taps).
        bias: (channels,). None: none.
        g: Gradient of the output.
        silu: Whether SiLU follows the convolution.
    """
    from ember_ml.backend.torch.kernels.programs import causal_conv1d as programs

    batch, channels, length = x.shape
    grid = _grid(x)
    weight = weight.contiguous()
    grad = torch.empty_like(x)
    inner = new_sums(x, batch, length, channels).transpose(1, 2) if silu else g
    parts = batch * grid[1], channels
    of_weight, of_bias = new_sums(x, *parts, weight.shape[1]), new_sums(x, *parts)
    with on_device(x):
        programs.filter_gradients[grid](
            *(x, weight, None if bias is None else bias.contiguous(), g, inner),
            *(of_weight, of_bias, length, channels, *x.stride(), *g.stride()),
            HAS_BIAS=bias is not None,
            SILU=silu,
            **_tile(weight),
        )
        programs.input_gradients[grid](
            *(inner, weight, grad, length, channels, *inner.stride(), *grad.stride()),
            **_tile(weight),
        )
    return grad, of_weight.sum(0).to(weight.dtype), of_bias.sum(0).to(weight.dtype)


def _grid(x: Tensor) -> tuple[int, int, int]:
    return cdiv(x.shape[1], CHANNELS), cdiv(x.shape[2], TIME), x.shape[0]


def _tile(weight: Tensor) -> dict[str, int]:
    return {"TAPS": weight.shape[1], "T": TIME, "C": CHANNELS}


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, silu: bool) -> tuple[Tensor, None]:
    return forward(x, weight, bias, silu), None


def pull(operands: Any, _: Any, g: Tensor, silu: bool) -> list[Tensor | None]:
    """Return the gradients of x, weight and bias, which may be None."""
    *grads, of_bias = backward(*operands, g, silu)
    return [*grads, None if operands[2] is None else of_bias]


@forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Any, silu: bool) -> Tensor:
    return torch.empty_like(x)


@backward.register_fake
def _(x: Tensor, weight: Tensor, bias: Any, g: Any, silu: bool) -> Any:
    return torch.empty_like(x), weight.new_empty(weight.shape), weight.new_empty(len(weight))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *operands, ctx.silu = inputs
    ctx.save_for_backward(*operands)


def _pull(ctx: Any, g: Tensor) -> Any:
    return *pull(ctx.saved_tensors, None, g, ctx.silu), None


forward.register_autograd(_pull, setup_context=_save)
