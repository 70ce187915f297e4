"""Hyena's operator by C kernels, in the layout (channels, batch, time)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ember_ml.backend import native_gated_filters
from ember_ml.backend.native_gate_parts import GateParts
from ember_ml.backend.torch import long_convolution as long
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops import _kernel_calls as kernel_calls


def _whole(blocks: list[torch.Tensor]) -> torch.Tensor:
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


def _own(mask: Any) -> Any:
    """Return a contiguous copy of a mask, which may change before the backward pass reads it."""
    return None if mask is None else mask.clone(memory_format=torch.contiguous_format)


class DirectGates:
    """Operator of `gated_long_conv` and its gradient, with direct long filters.

    Args:
        mask: (batch, length), False for padding; None if there is none.
        plain: The same operator in ops that torch differentiates.
    """

    def __init__(self, mask: Any, plain: Any) -> None:
        self.mask = _own(mask)
        self.plain = plain

    def run(self, *operands: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the result, and that of the long filters if a gradient needs it."""
        access = accepted_frame(*operands)
        keep = any(x.requires_grad for x in operands)
        out, mixed = native_gated_filters.forward(access, operands, self.mask, keep)
        return out.transpose(0, 1), mixed

    def pull(self, operands: Any, mixed: torch.Tensor | None, g: torch.Tensor) -> list[Any]:
        """Return the gradients of all operands."""
        if not kernel_calls.is_served(g, *operands, least=1):  # as in `with_adjoint`
            return kernel_calls.gradients(self.plain, operands, g)
        access = accepted_frame(g, *operands)
        of_x, *grads, taps = native_gated_filters.adjoint(access, operands, self.mask, mixed, g)
        unused = operands[3].shape[1] - taps.shape[1]
        return [of_x.transpose(0, 1), *grads, torch.constant_pad_nd(taps, (0, unused))]


class Gates:
    """Operator of `gated_long_conv` and its gradient, with long filters by FFT.

    Args:
        x: (batch, shared, length).
        channels: Number of channels of the result.
        mask: (batch, length), False for padding; None if there is none.
        plain: The same operator in ops that torch differentiates.
    """

    def __init__(self, x: torch.Tensor, channels: int, mask: Any, plain: Any) -> None:
        self.size = long.block_size(x, channels)
        self.mask = _own(mask)
        self.plain = plain

    def run(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, kernel: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result, and that of the long convolution."""
        query, joined = self._parts(x, weight, bias).run()
        mixed = self._convolve(joined, kernel)
        return query.mul_(mixed).transpose(0, 1), mixed

    def pull(self, operands: Any, mixed: torch.Tensor, g: torch.Tensor) -> list[Any]:
        """Return the gradients of all operands."""
        if not kernel_calls.is_served(g, *operands, least=1):  # as in `with_adjoint`
            return kernel_calls.gradients(self.plain, operands, g)
        x, weight, bias, kernel = operands
        parts = self._parts(x, weight, bias)
        query, joined = parts.run()
        g = g.transpose(0, 1)
        of_query, of_mixed = g * mixed, query.mul_(g)
        of_joined, taps = self._pull_convolution(joined, of_mixed, kernel)
        of_kernel = torch.constant_pad_nd(taps, (0, kernel.shape[1] - taps.shape[1]))
        of_x, of_weight, of_bias = parts.pull(of_query, of_joined)
        return [of_x.transpose(0, 1), of_weight, of_bias, of_kernel]

    def _convolve(self, x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        """Convolve (channels, batch, time)."""
        way = self._transforms(x, kernel)
        return _whole([way.convolve(x[here]) for here in self._loaded(way, kernel)])

    def _pull_convolution(
        self, x: torch.Tensor, g: torch.Tensor, kernel: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of x and of the filters."""
        way = self._transforms(x, kernel)
        pulled = [way.pull(x[here], g[here]) for here in self._loaded(way, kernel)]
        into, taps = (_whole(list(parts)) for parts in zip(*pulled, strict=True))
        return into, taps

    def _transforms(self, x: torch.Tensor, kernel: torch.Tensor) -> long.Transforms:
        return long.Transforms(self.size, x.shape[2], min(x.shape[2], kernel.shape[1]), x)

    def _loaded(self, way: long.Transforms, kernel: torch.Tensor) -> Iterator[slice]:
        """Iterate over blocks of channels, with their filters set."""
        for at in range(0, len(kernel), self.size):
            way.load(kernel[at : at + self.size])
            yield slice(at, at + self.size)

    def _parts(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> GateParts:
        return GateParts(accepted_frame(x, weight, bias), x, weight, bias, self.mask)
