"""Causal convolutions of single channels with few taps, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml.backend.torch.fusion import fused, fusible

_BLOCK = 1 << 18  # elements of x and of y that fit a cache
_LARGE = 1 << 18
_TAPS = 8


def causal_conv1d(x: Any, weight: Any, bias: Any = None) -> Any:
    """As `ember_ml.ops.causal_conv1d` says."""
    if x.ndim != 3 or weight.ndim != 2 or weight.shape[0] != x.shape[1] or 0 in weight.shape:
        raise ShapeError(
            f"causal_conv1d takes x (batch, channels, length) and weight (channels, taps), "
            f"not shapes {(*x.shape,)} and {(*weight.shape,)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"causal_conv1d: bias must have the shape ({len(weight)},), not {(*bias.shape,)}"
        )
    few = weight.shape[1] <= min(_TAPS, x.shape[2])
    if few and x.numel() >= _LARGE and fusible(x, weight, bias):
        return fused(_run, _pull, _plain, x, weight, bias)
    return _plain(x, weight, bias)


def _plain(x: Any, weight: Any, bias: Any) -> Any:
    return F.conv1d(
        F.pad(x, (weight.shape[1] - 1, 0)), weight.unsqueeze(1), bias, groups=len(weight)
    )


def _blocks(*arrays: Any) -> Iterator[Any]:
    size = max(1, _BLOCK // arrays[0][0].numel())
    return zip(*[x.split(size) for x in arrays], strict=True)


def _taps(weight: Any) -> list[Any]:
    """The weights of the present, the last, the one before ..., each a column."""
    return [column.unsqueeze(1) for column in weight.contiguous().unbind(1)][::-1]


def _run(x: Any, weight: Any, bias: Any) -> tuple[Any, None]:
    present, *past = _taps(weight)
    out = torch.empty_like(x)
    for x_, y in _blocks(x, out):
        torch.mul(x_, present, out=y)
        if bias is not None:
            y += bias.unsqueeze(1)
        for back, tap in enumerate(past, 1):
            y[..., back:].addcmul_(x_[..., :-back], tap)
    return out, None


def _pull(operands: Any, kept: Any, g: Any) -> list[Any]:
    x, weight, bias = operands
    present, *past = _taps(weight)
    into = torch.empty_like(x)
    products = torch.zeros((len(weight), weight.shape[1]), dtype=x.dtype)
    sums = torch.zeros(len(weight), dtype=x.dtype)
    for x_, g_, into_ in _blocks(x, g, into):
        torch.mul(g_, present, out=into_)
        products[:, -1] += (g_ * x_).sum((0, 2))
        for back, tap in enumerate(past, 1):
            late, early = g_[..., back:], x_[..., :-back]
            into_[..., :-back].addcmul_(late, tap)
            products[:, -1 - back] += (late * early).sum((0, 2))
        if bias is not None:
            sums += g_.sum((0, 2))
    return [into, products, None if bias is None else sums]
