"""Depthwise causal convolutions with few taps, in cache-sized blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml._native.calls import Kernel
from ember_ml.backend import native_convolution as native
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops._kernel_calls import (
    call,
    is_autocast,
    is_served,
    threads,
    with_adjoint,
)

_BLOCK = 1 << 18  # elements of x and of y that fit a cache
_LARGE = 1 << 18
TAPS = 8
_ROWS = Kernel("causal_rows", "ppppiiiiiii")
_ROWS_ADJOINT = Kernel("causal_rows_adjoint", "ppppppiiiiiii")


def causal_conv1d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Implement `ember_ml.ops.causal_conv1d`."""
    _check(x, weight, bias)
    if kernels.serves(x, weight, bias) and kernels.causal_conv1d.takes(x, weight):
        return kernels.causal_conv1d.apply(x, weight, bias, silu=False)
    if is_autocast(x):
        return _plain(x, weight, bias)
    if is_served(x, weight, bias):
        return with_adjoint(_by_kernel, _pull_by_kernel, _plain, x, weight, bias)
    few = weight.shape[1] <= min(TAPS, x.shape[2])
    if few and x.numel() >= _LARGE and fusible(x, weight, bias):
        return fused(_run, _pull, _plain, x, weight, bias)
    return _plain(x, weight, bias)


def causal_conv1d_silu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Implement `ember_ml.ops.causal_conv1d_silu`."""
    _check(x, weight, bias)
    if kernels.serves(x, weight, bias) and kernels.causal_conv1d.takes(x, weight):
        return kernels.causal_conv1d.apply(x, weight, bias, silu=True)
    few = weight.shape[1] <= native.MOST_TAPS
    if few and not is_autocast(x) and is_served(x, weight, bias):
        return with_adjoint(_run_silu, _pull_silu, _plain_silu, x, weight, bias)
    return F.silu(causal_conv1d(x, weight, bias))


def _check(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    if x.ndim != 3 or weight.ndim != 2 or weight.shape[0] != x.shape[1] or 0 in weight.shape:
        raise ShapeError(
            f"causal_conv1d takes x (batch, channels, length) and weight (channels, taps), "
            f"not shapes {(*x.shape,)} and {(*weight.shape,)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"causal_conv1d: bias must have the shape ({len(weight)},), not {(*bias.shape,)}"
        )


def _plain(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.conv1d(
        F.pad(x, (weight.shape[1] - 1, 0)), weight.unsqueeze(1), bias, groups=len(weight)
    )


def _plain_silu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.silu(_plain(x, weight, bias))


def _blocks(*arrays: Any) -> Iterator[Any]:
    size = max(1, _BLOCK // arrays[0][0].numel())
    return zip(*[x.split(size) for x in arrays], strict=True)


def columns(weight: torch.Tensor, axes: int = 1) -> list[Any]:
    """Return the taps from the current position backward, shaped to broadcast."""
    shape = (-1, *[1] * axes)
    return [column.reshape(shape) for column in weight.unbind(1)][::-1]


def filter_into(out: torch.Tensor, x: torch.Tensor, taps: list[Any], bias: torch.Tensor) -> None:
    """Filter x along the last axis; taps and bias broadcast."""
    present, *past = taps
    if bias is None:
        torch.mul(x, present, out=out)
    else:
        torch.addcmul(bias, x, present, out=out)
    for back, tap in enumerate(past, 1):
        out[..., back:].addcmul_(x[..., :-back], tap)


def add_adjoint(into: Any, g: torch.Tensor, taps: list[Any]) -> None:
    """Add the gradient of x, given the gradient g of the filtered x."""
    present, *past = taps
    into.addcmul_(g, present)
    for back, tap in enumerate(past, 1):
        into[..., :-back].addcmul_(g[..., back:], tap)


def add_products(into: Any, g: torch.Tensor, x: torch.Tensor, axes: tuple[int, ...]) -> None:
    """Add the gradient of the weights, (channels, taps), summed over the other axes."""
    into[:, -1] += (g * x).sum(axes)
    for back in range(1, into.shape[1]):
        into[:, -1 - back] += (g[..., back:] * x[..., :-back]).sum(axes)


def _run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[Any, None]:
    taps, out = columns(weight), torch.empty_like(x)
    shift = None if bias is None else bias.unsqueeze(1)
    for x_, y in _blocks(x, out):
        filter_into(y, x_, taps, shift)
    return out, None


def _pull(operands: Any, saved: Any, g: torch.Tensor) -> list[Any]:
    x, weight, bias = operands
    taps, into = columns(weight), torch.zeros_like(x)
    products = weight.new_zeros(weight.shape)
    sums = None if bias is None else torch.zeros_like(bias)
    for x_, g_, into_ in _blocks(x, g, into):
        add_adjoint(into_, g_, taps)
        add_products(products, g_, x_, (0, 2))
        if sums is not None:
            sums += g_.sum((0, 2))
    return [into, products, sums]


def _in_rows(x: torch.Tensor) -> torch.Tensor:
    """Return x with contiguous rows of time, copied if it has others."""
    return x if x.transpose(0, 1).is_contiguous() else x.contiguous()


def _by_kernel(x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
    taps = weight.shape[1]
    if native.fits(x.stride(), taps):
        return _by_columns(x, weight, bias, silu=False)
    x = _in_rows(x)
    out = torch.empty_like(x)
    tensors = (x, weight.contiguous(), None if bias is None else bias.contiguous(), out)
    workers = min(threads(x.numel() * taps), x.shape[1])
    call(_ROWS, tensors, *x.shape, taps, *x.stride()[:2], workers)
    return out


def _pull_by_kernel(g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> Any:
    taps = weight.shape[1]
    if native.fits(x.stride(), taps):
        return _pull_by_columns(g, x, weight, bias, silu=False)
    x, weight = _in_rows(x), weight.contiguous()
    g = torch.empty_like(x).copy_(g) if g.stride() != x.stride() else g
    of_x, of_weight, of_bias = (
        torch.empty_like(x),
        torch.empty_like(weight),
        x.new_empty(len(weight)),
    )
    workers = min(threads(2 * x.numel() * taps), x.shape[1])
    tensors = (g, x, weight, of_x, of_weight, of_bias)
    call(_ROWS_ADJOINT, tensors, *x.shape, taps, *x.stride()[:2], workers)
    return of_x, of_weight, None if bias is None else of_bias


def _by_columns(x: torch.Tensor, weight: torch.Tensor, bias: Any, silu: bool) -> torch.Tensor:
    return native.forward(accepted_frame(x, weight, bias), x, weight, bias, silu)


def _pull_by_columns(
    g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: Any, silu: bool
) -> Any:
    access = accepted_frame(g, x, weight, bias)
    of_x, of_weight, of_bias = native.adjoint(access, g, x, weight, bias, silu)
    return of_x, of_weight, None if bias is None else of_bias


_run_silu = partial(_by_columns, silu=True)
_pull_silu = partial(_pull_by_columns, silu=True)
