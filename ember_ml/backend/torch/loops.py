"""Recurrences with gradients written by hand: few kernels a step, and none of autograd.

What a step's gradient needs beside the gradient that arrives is computed for all steps at once, and
so are the gradients of the weights. Time is the first axis here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class ClosedForm:
    """`closed_form`, forward and backward."""

    def __init__(self, gated: bool) -> None:
        self.gated = gated

    def forward(
        self, x: Any, h0: Any, weight_hh: Any, weight: Any, bias: Any, timespans: Any
    ) -> Any:
        """The states, (batch, time, hidden)."""
        batch, length, width = x.shape
        size = h0.shape[1]
        parts = 3 if timespans is None else 4
        self.states = x.new_empty(length + 1, batch, size)
        self.states[0] = h0
        self.inner: Any = None
        hidden: Any = None
        if weight is not None:
            self.inner = x.new_empty(length, batch, width)
            hidden = self.inner.unbind()
        z = x.new_empty(length, batch, parts * size)
        steps = zip(
            x.unbind(1),
            self.states[:-1].unbind(),
            self.states[1:].unbind(),
            z.unbind(),
            z[..., : 2 * size].unbind(),
            z[..., :size].unbind(),
            z[..., size : 2 * size].unbind(),
            z[..., -size:].unbind(),
            strict=True,
        )
        into, mixed = weight_hh.t(), torch.lerp if self.gated else _without_gate
        if bias is None and weight is not None:
            bias = weight.new_zeros(len(weight))
        spans = None if timespans is None else timespans.transpose(0, 1)
        slow: Any = None if spans is None else (z[..., 2 * size : -size].unbind(), spans.unbind())
        heads = None if weight is None else weight.t()
        for at, (entry, h, after, here, both, f1, f2, gate) in enumerate(steps):
            if hidden is None:
                torch.addmm(entry, h, into, out=here)
            else:
                inner = torch.addmm(entry, h, into, out=hidden[at]).tanh_()
                torch.addmm(bias, inner, heads, out=here)
            both.tanh_()
            if slow is not None:
                gate.addcmul_(slow[0][at], slow[1][at])
            gate.sigmoid_()
            mixed(f1, f2, gate, out=after)
        self.z, self.spans = z, spans
        return self.states[1:].transpose(0, 1)

    def _factors(self, size: int) -> Any:
        """The derivatives of a state for the parts of z, (time, batch, parts, hidden)."""
        f1, f2, t = self.z[..., :size], self.z[..., size : 2 * size], self.z[..., -size:]
        shape = (*self.z.shape[:2], self.z.shape[2] // size, size)
        factors = self.z.new_empty(shape)
        one = t.new_ones(())
        torch.addcmul(one, f1, f1, value=-1, out=factors[:, :, 0])
        torch.addcmul(one, f2, f2, value=-1, out=factors[:, :, 1]).mul_(t)
        rest = 1 - t
        torch.mul(f2 - f1 if self.gated else f2, t, out=factors[:, :, -1]).mul_(rest)
        if self.gated:
            factors[:, :, 0] *= rest
        if self.spans is not None:
            torch.mul(factors[:, :, 3], self.spans, out=factors[:, :, 2])
        return factors

    def backward(self, arrays: Sequence[Any], g: Any) -> list[Any]:
        """The gradients of all arrays; None for those that are None."""
        x, h0, weight_hh, weight, bias, timespans = arrays
        length, size = x.shape[1], h0.shape[1]
        factors = self._factors(size)
        dz = torch.empty_like(self.z)
        slopes: Any = None
        if weight is not None:
            slopes = torch.addcmul(self.inner.new_ones(()), self.inner, self.inner, value=-1)
        dx = dz if weight is None else torch.empty_like(self.inner)
        g = g.transpose(0, 1)
        dh, before = g[-1], [h0.new_zeros(h0.shape), *g[:-1].unbind()]
        steps = zip(
            before,
            factors.unbind(),
            dz.unflatten(2, (-1, size)).unbind(),
            dz.unbind(),
            dx.unbind(),
            [None] * length if weight is None else slopes.unbind(),
            strict=True,
        )
        for earlier, factor, parts, here, inner, slope in reversed(list(steps)):
            torch.mul(factor, dh.unsqueeze(1), out=parts)
            if weight is not None:
                torch.mm(here, weight, out=inner).mul_(slope)
            dh = torch.addmm(earlier, inner, weight_hh)
        grads = [dx.transpose(0, 1), dh, dx.flatten(0, 1).t() @ self.states[:-1].flatten(0, 1)]
        flat = dz.flatten(0, 1)
        grads.append(None if weight is None else flat.t() @ self.inner.flatten(0, 1))
        grads.append(None if bias is None else flat.sum(0))
        grads.append(None if timespans is None else self._timespans(arrays, dz, size))
        return grads

    def _timespans(self, arrays: Sequence[Any], dz: Any, size: int) -> Any:
        slow = self.z[..., 2 * size : -size]
        each = (dz[..., -size:] * slow).sum(-1, keepdim=True).transpose(0, 1)
        return each if len(arrays[5]) == len(each) else each.sum(0, keepdim=True)


def _without_gate(f1: Any, f2: Any, t: Any, out: Any) -> None:
    torch.addcmul(f1, t, f2, out=out)


class Liquid:
    """`liquid`, forward and backward."""

    def forward(
        self, x: Any, v0: Any, capacity: Any, slopes: Any, offsets: Any, weights: Any
    ) -> Any:
        """The potentials, (batch, time, neurons)."""
        batch, length, _ = x.shape
        size = v0.shape[1]
        self.states = x.new_empty(length + 1, batch, size)
        self.states[0] = v0
        self.open = x.new_empty(length, batch, len(slopes))
        self.sums = x.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        self.sums[..., size:] += capacity
        read, write = slopes.t(), weights.t()
        steps = zip(
            self.states[:-1].unbind(),
            self.states[1:].unbind(),
            self.open.unbind(),
            self.sums.unbind(),
            self.sums[..., :size].unbind(),
            self.sums[..., size:].unbind(),
            strict=True,
        )
        for v, after, s, sums, currents, conductances in steps:
            torch.addmm(offsets, v, read, out=s).sigmoid_()
            sums.addmm_(s, write)
            torch.addcmul(currents, capacity, v, out=after)
            after.div_(conductances)
        return self.states[1:].transpose(0, 1)

    def backward(self, arrays: Sequence[Any], g: Any) -> list[Any]:
        """The gradients of all arrays."""
        _, v0, capacity, slopes, _, weights = arrays
        size = v0.shape[1]
        inverse = self.sums[..., size:].reciprocal()
        factors = torch.stack([inverse, -inverse * self.states[1:]], 2)
        dsums, dz = torch.empty_like(self.sums), torch.empty_like(self.open)
        steep = self.open - self.open * self.open
        g = g.transpose(0, 1)
        dv, before = g[-1], [v0.new_zeros(v0.shape), *g[:-1].unbind()]
        steps = zip(
            before,
            factors.unbind(),
            dsums.unflatten(2, (2, size)).unbind(),
            dsums.unbind(),
            dsums[..., :size].unbind(),
            dz.unbind(),
            steep.unbind(),
            strict=True,
        )
        for earlier, factor, parts, here, currents, inner, slope in reversed(list(steps)):
            torch.mul(factor, dv.unsqueeze(1), out=parts)
            torch.mm(here, weights, out=inner).mul_(slope)
            dv = torch.addmm(earlier, inner, slopes).addcmul_(currents, capacity)
        v, flat = self.states[:-1], dz.flatten(0, 1)
        dcapacity = (dsums[..., :size] * v + dsums[..., size:]).sum((0, 1))
        return [
            dsums.transpose(0, 1),
            dv,
            dcapacity,
            flat.t() @ v.flatten(0, 1),
            flat.sum(0),
            dsums.flatten(0, 1).t() @ self.open.flatten(0, 1),
        ]
