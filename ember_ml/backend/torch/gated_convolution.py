"""Hyena's operator: a long convolution between gates, for a few channels at a time.

Short filters are cheap compared with memory: the backward pass computes the gates again, and only
the result of the long convolution is stored.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ember_ml._core.errors import ShapeError
from ember_ml.backend.torch import causal_convolution as short
from ember_ml.backend.torch import long_convolution as long
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.gates import DirectGates, Gates
from ember_ml.backend.torch.native import is_dense
from ember_ml.backend.torch.ops._kernel_calls import is_autocast, is_served

_LARGE = 1 << 17


def gated_long_conv(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    kernel: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Implement `ember_ml.ops.gated_long_conv`."""
    _check(x, weight, bias, kernel, mask)
    operands = (x, weight, bias, kernel)
    padding = None if mask is None else ~mask
    plain = partial(_plain, padding)
    if is_autocast(x):
        return plain(*operands)
    if is_served(*operands) and (mask is None or is_dense(mask, torch.bool)):
        is_short = x.shape[2] <= long.SHORT
        gates = DirectGates(mask, plain) if is_short else Gates(x, len(kernel), mask, plain)
        return fused(gates.run, gates.pull, plain, *operands)
    if _is_large(x, weight) and fusible(*operands):
        form = _Blocks(x, len(kernel), padding)
        return fused(form.run, form.pull, plain, *operands)
    return _plain(padding, *operands)


def gated_conv_inputs(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Implement `ember_ml.ops.gated_conv_inputs`."""
    channels = len(weight) // 3
    _check(x, weight, bias, weight[:channels], mask)
    operands = (x, weight, bias)
    padding = None if mask is None else ~mask
    recorded = torch.is_grad_enabled() and any(a.requires_grad for a in operands)
    whole = recorded or is_autocast(x)
    if not whole and _is_large(x, weight) and fusible(*operands):
        return _Blocks(x, channels, padding).inputs(*operands)
    return _parts(padding, *operands)[1]


def _is_large(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Return whether blocks of channels are faster than all channels at once."""
    return weight.shape[1] <= min(short.TAPS, x.shape[2]) and x.numel() >= _LARGE


def _check(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    kernel: torch.Tensor,
    mask: torch.Tensor,
) -> None:
    if x.ndim == 3 and weight.ndim == kernel.ndim == 2 and kernel.numel() and weight.numel():
        shared, filters = x.shape[1], 3 * len(kernel)
        right = (len(weight),) == (*bias.shape,) == (filters,) and shared and not filters % shared
        if right and (mask is None or mask.shape == (len(x), x.shape[2])):
            return
    shapes = ", ".join(str((*a.shape,)) for a in (x, weight, bias, kernel, mask) if a is not None)
    raise ShapeError(
        "gated_long_conv takes x of (batch, shared, length), where shared divides 3 * channels, "
        "weight of (3 * channels, taps), bias of (3 * channels,), kernel of (channels, taps) and "
        f"mask of (batch, length), not the shapes {shapes}"
    )


def _plain(
    padding: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, kernel: torch.Tensor
) -> torch.Tensor:
    query, joined = _parts(padding, x, weight, bias)
    return query * long.long_conv(joined, kernel)


def _parts(
    padding: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the query, and the key times the value."""
    u = short.causal_conv1d(x.repeat(1, len(weight) // x.shape[1], 1), weight, bias)
    query, key, value = u.chunk(3, 1)
    joined = key * value
    return query, joined if padding is None else joined.masked_fill(padding.unsqueeze(1), 0)


class _Blocks:
    """Operator on blocks of channels, and its gradient."""

    def __init__(self, x: torch.Tensor, channels: int, padding: Any) -> None:
        self.size = long.block_size(x, x.shape[1], channels)
        self.padding = padding

    def run(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, kernel: torch.Tensor
    ) -> tuple[Any, Any]:
        """Return the result, and that of the long convolution."""
        way, x = long.method(self.size, x, kernel), x.transpose(0, 1)
        out = x.new_empty(len(kernel), *x.shape[1:])
        mixed = torch.empty_like(out)
        for at in range(0, len(kernel), self.size):
            here = slice(at, at + self.size)
            query, key, value = self._filtered(x, weight, bias, at)
            way.load(kernel[here])
            mixed[here] = way.convolve(self._masked(key.mul_(value)))
            torch.mul(query, mixed[here], out=out[here])
        return out.transpose(0, 1), mixed

    def inputs(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return the key times the value."""
        x = x.transpose(0, 1)
        out = x.new_empty(len(weight) // 3, *x.shape[1:])
        for at in range(0, len(out), self.size):
            here = out[at : at + self.size]
            _, key, value = self._filtered(x, weight, bias, at, first=1)
            self._masked(torch.mul(key, value, out=here))
        return out.transpose(0, 1)

    def pull(self, operands: Any, mixed: Any, g: torch.Tensor) -> list[Any]:
        """Return the gradients of all operands."""
        x, weight, bias, kernel = operands
        way, x, g = long.method(self.size, x, kernel), x.transpose(0, 1), g.transpose(0, 1)
        grads = [torch.zeros_like(a) for a in (x, weight, bias, kernel)]
        for at in range(0, len(kernel), self.size):
            here = slice(at, at + self.size)
            query, key, value = self._filtered(x, weight, bias, at)
            way.load(kernel[here])
            joined = self._masked(key * value)
            of_joined, taps = way.pull(joined, query.mul_(g[here]))
            grads[3][here, : taps.shape[1]] = taps
            of_joined = self._masked(of_joined)
            parts = g[here] * mixed[here], value.mul_(of_joined), key.mul_(of_joined)
            self._pull_filters(x, weight, grads, parts, at)
        grads[0] = grads[0].transpose(0, 1)
        return grads

    def _masked(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.padding is None else x.masked_fill_(self.padding, 0)

    def _places(self, x: torch.Tensor, weight: torch.Tensor, at: int) -> list[tuple[slice, slice]]:
        """Return the positions of a block's query, key and value in x and among the filters."""
        starts = [at + part * len(weight) // 3 for part in range(3)]
        sources = [start % len(x) for start in starts]
        return [
            (slice(source, source + self.size), slice(start, start + self.size))
            for source, start in zip(sources, starts, strict=True)
        ]

    def _filtered(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, at: int, first: int = 0
    ) -> torch.Tensor:
        """Return the query, key and value of a block, undefined before the first that is needed."""
        parts = x.new_empty(3, self.size, *x.shape[1:])
        places = self._places(x, weight, at)
        for out, (source, filters) in zip(parts[first:], places[first:], strict=True):
            taps = short.columns(weight[filters], 2)
            short.filter_into(out, x[source], taps, bias[filters].reshape(-1, 1, 1))
        return parts

    def _pull_filters(
        self, x: torch.Tensor, weight: torch.Tensor, grads: Any, parts: Any, at: int
    ) -> None:
        """Accumulate the gradients of x, the weight and the bias."""
        for g, (source, filters) in zip(parts, self._places(x, weight, at), strict=True):
            short.add_adjoint(grads[0][source], g, short.columns(weight[filters], 2))
            short.add_products(grads[1][filters], g, x[source], (1, 2))
            grads[2][filters] = g.sum((1, 2))
