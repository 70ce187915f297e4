"""Synapses in blocks of positions: one row per synapse, one column per position.

Arrays of size (positions, synapses) are temporary; the backward pass computes them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._native.frame import Frame
from ember_ml.backend import cell_shapes, native_synapses
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.native import frame

_BLOCK = 1 << 18  # elements of a buffer that fits a cache
_LARGE = 1 << 16
_SMALL = 1 << 12  # below this number of sigmoids, two small matrix products are as fast as C
_HALVES = (torch.float16, torch.bfloat16)


def synapses(
    v: torch.Tensor,
    slopes: Any,
    offsets: Any,
    weights: torch.Tensor,
    sources: Any,
    destinations: Any,
    size: int,
) -> torch.Tensor:
    """Implement `ember_ml.ops.synapses`."""
    if not isinstance(size, int) or size < 0:
        raise ValueError("size must be an integer of at least 0")
    cell_shapes.check_synapses(v, slopes, offsets, weights, sources, destinations)
    operands = [x.float() if v.dtype in _HALVES else x for x in (v, slopes, offsets, weights)]
    sources, destinations = (x.long().contiguous() for x in (sources, destinations))
    group = _Synapses(sources, destinations, v.shape[-1], size)
    return group(*operands).to(v.dtype)


class _Synapses:
    """Synapses between two groups of neurons."""

    def __init__(self, sources: Any, destinations: Any, neurons: int, size: int) -> None:
        self.sources = sources
        self.destinations = destinations
        self.neurons = neurons
        self.size = size

    def __call__(
        self, v: torch.Tensor, slopes: Any, offsets: Any, weights: torch.Tensor
    ) -> torch.Tensor:
        operands = v, slopes, offsets, weights
        places = self.sources, self.destinations  # torch raises if they change before a gradient
        work = v.shape[:-1].numel() * len(slopes)
        access = frame(*operands) if work >= _SMALL and fusible(*operands) else None
        if access is not None and native_synapses.fits(operands, *places, self.size):
            return fused(*self._by_kernel(access), self.plain, *operands, *places)
        if work >= _LARGE and fusible(*operands):
            return fused(self.run, self.pull, self.plain, *operands, *places)
        return self.plain(*operands)

    def _by_kernel(self, access: Frame) -> tuple[Any, Any]:
        """Return the two passes by C kernels."""

        def run(*given: torch.Tensor) -> tuple[torch.Tensor, None]:
            *operands, sources, destinations = given
            out = native_synapses.forward(access, operands, sources, destinations, self.size)
            return out, None

        def pull(given: Any, _: None, g: torch.Tensor) -> list[Any]:
            *operands, sources, destinations = given
            places = sources, destinations, self.size
            return [*native_synapses.adjoint(access, operands, *places, g), None, None]

        return run, pull

    def plain(
        self, v: torch.Tensor, slopes: Any, offsets: Any, weights: torch.Tensor, *_: Any
    ) -> torch.Tensor:
        """Products with matrices that have one entry per synapse."""
        read = _one_hot(self.sources, self.neurons, v) * slopes.unsqueeze(1)
        write = _one_hot(self.destinations, self.size, v).t() * weights.unsqueeze(1)
        return F.linear(F.linear(v, read, offsets).sigmoid(), write.flatten(0, 1))

    def run(
        self, v: torch.Tensor, slopes: Any, offsets: Any, weights: torch.Tensor, *_: Any
    ) -> tuple[Any, None]:
        kinds, count = weights.shape
        order, ends = _bags(self.destinations, self.size)
        steps = torch.arange(kinds, device=v.device).unsqueeze(1)
        starts = torch.cat([ends[:1], (ends[1:] + count * steps).flatten()])
        ordered, weights = order.repeat(kinds), weights[:, order].flatten()
        out = v.new_empty(v.shape[:-1].numel(), kinds * self.size)
        for (s,), v_, y in _blocks(count, 1, v, out):
            torch.index_select(v_.t().contiguous(), 0, self.sources, out=s)
            s.mul_(slopes.unsqueeze(1)).add_(offsets.unsqueeze(1)).sigmoid_()
            y.copy_(_summed(s, ordered, starts, weights).t())
        return out.unflatten(0, v.shape[:-1]), None

    def pull(self, operands: Any, saved: None, g: torch.Tensor) -> list[Any]:
        """Return the gradients of v, slopes, offsets and weights; None for the indices."""
        v, slopes, offsets, weights, *_ = operands
        order, ends = _bags(self.sources, self.neurons)
        steepness, places = slopes[order], self._places(len(weights))
        dv = v.new_empty(v.shape[:-1].numel(), self.neurons)
        grads = torch.zeros_like(slopes), torch.zeros_like(offsets), torch.zeros_like(weights)
        for (read, s, dz, *rest), v_, g_, dv_ in _blocks(len(slopes), 5, v, g, dv):
            torch.index_select(v_.t().contiguous(), 0, self.sources, out=read)
            torch.mul(read, slopes.unsqueeze(1), out=s).add_(offsets.unsqueeze(1)).sigmoid_()
            _into(dz, s, g_.t().contiguous(), places, weights, grads[2], rest)
            torch.ops.aten.sigmoid_backward.grad_input(dz, s, grad_input=dz)
            grads[1].add_(dz.sum(1))
            grads[0].add_(read.mul_(dz).sum(1))
            dv_.copy_(_summed(dz, order, ends, steepness).t())
        return [dv.view(v.shape), *grads, None, None]

    def _places(self, kinds: int) -> list[Any]:
        """Return the slices of the sums of each kind."""
        return [self.destinations + at * self.size for at in range(kinds)]


def _into(
    ds: Any,
    s: Any,
    g: torch.Tensor,
    places: Any,
    weights: torch.Tensor,
    dweights: Any,
    room: Sequence[Any],
) -> None:
    """Return the gradient of s; accumulate that of the weights."""
    mine, product = room
    for at, (place, weight) in enumerate(zip(places, weights.unsqueeze(2), strict=True)):
        torch.index_select(g, 0, place, out=mine)
        dweights[at] += torch.mul(mine, s, out=product).sum(1)
        if at:
            ds += mine.mul_(weight)
        else:
            torch.mul(mine, weight, out=ds)


def _one_hot(places: Any, size: int, like: torch.Tensor) -> torch.Tensor:
    return (places.unsqueeze(1) == torch.arange(size, device=places.device)).to(like.dtype)


def _bags(places: Any, size: int) -> tuple[Any, Any]:
    """Return the synapses sorted by target, and the boundaries of each target."""
    ends = F.pad(torch.bincount(places, minlength=size).cumsum(0), (1, 0))
    return places.argsort(stable=True), ends


def _summed(rows: torch.Tensor, order: Any, ends: Any, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sums of each target's rows."""
    return torch.embedding_bag(rows, order, ends, False, 0, False, weights, True)[0]


def _blocks(count: int, buffers: int, *arrays: Any) -> Iterator[Any]:
    """Split the positions into blocks whose buffers (synapses, positions) fit the cache."""
    size = max(1, _BLOCK // count)
    parts = [x.reshape(-1, x.shape[-1]).split(size) for x in arrays]
    room = arrays[0].new_empty(buffers, count * len(parts[0][0]))
    for block in zip(*parts, strict=True):
        positions = len(block[0])
        yield room[:, : count * positions].view(buffers, count, positions), *block
