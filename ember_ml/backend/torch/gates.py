"""Hyena's gates and short filters by C kernels, in the layout (channels, batch, time)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ember_ml import _native
from ember_ml._native.calls import Kernel
from ember_ml.backend.torch import long_convolution as long
from ember_ml.backend.torch.ops import _kernel_calls as kernel_calls

_PARTS = Kernel("gate_parts", "pppppppiiiiii")
_ADJOINT = Kernel("gate_parts_adjoint", "ppppppppppiiiiii")
_TOEPLITZ, _DIAGONALS = Kernel("toeplitz", "ppiiiii"), Kernel("diagonal_sums", "ppiiiii")


class Products:
    """Convolution with a Toeplitz matrix per channel, like `long_convolution.Products`."""

    def __init__(self, channels: int, length: int, taps: int, like: torch.Tensor) -> None:
        self.length, self.taps = length, taps
        self.matrices = like.new_empty(channels, length, length)

    def load(self, kernel: torch.Tensor) -> None:
        """Set the filters, (channels, at least taps)."""
        self._call(_TOEPLITZ, kernel[:, : self.taps].contiguous(), self.matrices)

    def convolve(self, x: torch.Tensor) -> torch.Tensor:
        """Convolve (channels, batch, time)."""
        return torch.bmm(x, self.matrices)

    def pull(self, x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of x and of the filters."""
        sums = x.new_empty(len(x), self.taps)
        self._call(_DIAGONALS, torch.bmm(x.mT, g), sums)
        return torch.bmm(g, self.matrices.mT), sums

    def _call(self, kernel: Kernel, first: torch.Tensor, second: torch.Tensor) -> None:
        sizes = (len(self.matrices), self.length, self.taps, self.taps)
        threads = min(kernel_calls.threads(self.matrices.numel()), len(self.matrices))
        kernel_calls.call(kernel, (first, second), *sizes, threads)


def _method(channels: int, x: torch.Tensor, kernel: torch.Tensor) -> Any:
    """Return the faster convolution for blocks of channels of x (batch, channels, time)."""
    batch, _, length = x.shape
    if not long.is_direct(batch, length):
        return long.method(channels, x, kernel)
    return Products(channels, length, min(length, kernel.shape[1]), x)


def _whole(blocks: list[torch.Tensor]) -> torch.Tensor:
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


class Gates:
    """Operator of `gated_long_conv`, and its gradient.

    Args:
        x: (batch, shared, length).
        channels: Number of channels of the result.
        mask: (batch, length), False for padding; None if there is none.
        plain: The same operator in ops that torch differentiates.
    """

    def __init__(self, x: torch.Tensor, channels: int, mask: Any, plain: Any) -> None:
        self.size = long.block_size(x, channels)
        self.mask = None if mask is None else mask.contiguous()
        self.plain = plain

    def run(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, kernel: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result, and that of the long convolution."""
        query, joined = self._parts(x, weight, bias)
        way = _method(self.size, x, kernel)
        mixed = _whole([way.convolve(joined[here]) for here in self._loaded(way, kernel)])
        return query.mul_(mixed).transpose(0, 1), mixed

    def pull(self, operands: Any, mixed: torch.Tensor, g: torch.Tensor) -> list[Any]:
        """Return the gradients of all operands."""
        if _native.library is None:  # switched off since the forward pass
            return kernel_calls.gradients(self.plain, operands, g)
        x, weight, bias, kernel = operands
        query, joined = self._parts(x, weight, bias)
        g, way = g.transpose(0, 1), _method(self.size, x, kernel)
        of_query, of_mixed = g * mixed, query.mul_(g)
        pulled = [way.pull(joined[at], of_mixed[at]) for at in self._loaded(way, kernel)]
        of_joined, taps = (_whole(list(parts)) for parts in zip(*pulled, strict=True))
        of_kernel = torch.constant_pad_nd(taps, (0, kernel.shape[1] - taps.shape[1]))
        return [*self._pull_parts(x, weight, bias, of_query, of_joined.contiguous()), of_kernel]

    def _loaded(self, way: Any, kernel: torch.Tensor) -> Iterator[slice]:
        """Iterate over blocks of channels, with their filters set."""
        for at in range(0, len(kernel), self.size):
            way.load(kernel[at : at + self.size])
            yield slice(at, at + self.size)

    def _parts(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the query, and the key times the value."""
        operands, rows, sizes = self._operands(x, weight, bias)
        query, joined = rows.new_empty(2, *sizes[1:4])
        kernel_calls.call(_PARTS, (*operands, query, joined, rows), *sizes, len(rows))
        return query, joined

    def _pull_parts(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        of_query: torch.Tensor,
        of_joined: torch.Tensor,
    ) -> list[torch.Tensor]:
        """Return the gradients of x, the weight and the bias."""
        operands, rows, sizes = self._operands(x, weight, bias)
        of_x = rows.new_empty(sizes[0], *sizes[2:4])
        grads = [of_x, torch.empty_like(operands[1]), torch.empty_like(operands[2])]
        arrays = (*operands, of_query.contiguous(), of_joined, *grads, rows)
        kernel_calls.call(_ADJOINT, arrays, *sizes, len(rows))
        return [of_x.transpose(0, 1), *grads[1:]]

    def _operands(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[list[Any], torch.Tensor, tuple[int, ...]]:
        """Return the operands of the kernels, memory for each thread, and the sizes."""
        batch, shared, length = x.shape
        filters, taps = weight.shape
        padded = torch.constant_pad_nd(x.transpose(0, 1), (taps - 1, 0)).contiguous()
        threads = min(kernel_calls.threads(filters * batch * length * taps), shared)
        rows = padded.new_empty(threads, 3, batch, taps - 1 + length)
        operands = [padded, weight.contiguous(), bias.contiguous(), self.mask]
        return operands, rows, (shared, filters // 3, batch, length, taps)
