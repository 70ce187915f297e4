"""Recurrences with hand-written backward passes: few kernels per step, and no autograd.

The backward pass computes the factors of all steps, and the gradients of the weights, in one
operation each. Inside the loops, time is the first axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input


class ClosedForm:
    """Forward and backward pass of `closed_form` (CfC cells).

    Args:
        gated: Whether the two heads are mixed by the gate instead of added.
    """

    def __init__(self, gated: bool) -> None:
        self.gated = gated

    def forward(
        self,
        x: Tensor,
        h0: Tensor,
        weight_hh: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        timespans: Tensor | None,
    ) -> Tensor:
        """Return the states, (batch, time, hidden).

        tanh(x) is computed as 2 sigmoid(2 x) - 1, since torch's sigmoid takes a quarter of the
        time. Inside the loop a state h is stored as (h + 1) / 2; the weights and a final pass
        apply the scale and shift.
        """
        batch, length, width = x.shape
        size = h0.shape[1]
        double = x.new_full((width,), 2.0)
        if weight is None:
            double[2 * size :] = 1.0
        entries = x.new_empty(length, batch, width)
        torch.sub(x.transpose(0, 1), weight_hh.sum(1), out=entries).mul_(double)
        into = weight_hh.t().mul(2).mul_(double).contiguous()
        self.states = x.new_empty(length + 1, batch, size)
        torch.add(h0, 1, out=self.states[0]).div_(2)
        self.spans: Tensor | None = None if timespans is None else timespans.transpose(0, 1)
        self.inner: Tensor | None = None
        if weight is None:
            self.z = entries
            self._run(entries, into, None, None)
        else:
            heads, shift = self._head_weights(weight, bias, size)
            self.inner = entries
            self.z = x.new_empty(length, batch, len(weight))
            self._run(entries, into, heads, shift)
            self.inner.mul_(2).sub_(1)
        self.z[..., : 2 * size].mul_(2).sub_(1)
        self.states.mul_(2).sub_(1)
        self.states[0] = h0
        return self.states[1:].transpose(0, 1)

    def _head_weights(
        self, weight: Tensor, bias: Tensor | None, size: int
    ) -> tuple[Tensor, Tensor]:
        """Return the matrix and bias that compute z from a sigmoid, doubled for the tanh parts."""
        shift = weight.sum(1).neg_()
        shift = shift if bias is None else shift.add_(bias)
        shift[: 2 * size] *= 2
        heads = weight.t().mul(2)
        heads[:, : 2 * size] *= 2
        return heads.contiguous(), shift

    def _run(
        self, entries: Tensor, into: Tensor, heads: Tensor | None, shift: Tensor | None
    ) -> None:
        size, z = self.states.shape[2], self.z
        steps = zip(
            entries.unbind(),
            self.states[:-1].unbind(),
            self.states[1:].unbind(),
            z.unbind(),
            z[..., :size].unbind(),
            z[..., size : 2 * size].unbind(),
            z[..., -size:].unbind(),
            [()] * len(z) if self.spans is None else self._slow(),
            strict=True,
        )
        mixed = torch.lerp if self.gated else _without_gate
        for entry, h, after, here, f1, f2, gate, slow in steps:
            entry.addmm_(h, into)
            if heads is not None:
                torch.addmm(shift, entry.sigmoid_(), heads, out=here)
            if slow:
                both, *factors = slow
                gate.addcmul_(*factors).sigmoid_()
                both.sigmoid_()
            else:
                here.sigmoid_()
            mixed(f1, f2, gate, out=after)

    def _slow(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Return, per step, the tanh parts of z, the part times the timespan, and the timespan."""
        size, z = self.states.shape[2], self.z
        assert self.spans is not None
        both, slow = z[..., : 2 * size], z[..., 2 * size : -size]
        return zip(both.unbind(), slow.unbind(), self.spans.unbind(), strict=True)

    def _factors(self, size: int) -> Tensor:
        """Return the derivatives of a state by the parts of z, (time, batch, parts, hidden)."""
        f1, f2, t = self.z[..., :size], self.z[..., size : 2 * size], self.z[..., -size:]
        shape = (*self.z.shape[:2], self.z.shape[2] // size, size)
        factors = self.z.new_empty(shape)
        rest = 1 - t if self.gated else torch.ones_like(t)
        _tanh_backward(rest, f1, grad_input=factors[:, :, 0])
        _tanh_backward(t, f2, grad_input=factors[:, :, 1])
        _sigmoid_backward(f2 - f1 if self.gated else f2, t, grad_input=factors[:, :, -1])
        if self.spans is not None:
            torch.mul(factors[:, :, 3], self.spans, out=factors[:, :, 2])
        return factors

    def backward(self, arrays: Sequence[Tensor], g: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays; None for arrays that are None."""
        x, h0, weight_hh, weight, bias, timespans = arrays
        length, size = x.shape[1], h0.shape[1]
        factors = self._factors(size)
        dz = torch.empty_like(self.z)
        slopes: Tensor | None = None
        if weight is not None:
            slopes = torch.ones_like(self.inner)
            _tanh_backward(slopes, self.inner, grad_input=slopes)
        dx = dz if weight is None else torch.empty_like(self.inner)
        g = g.transpose(0, 1)
        dh, before = g[-1], [h0.new_zeros(h0.shape), *g[:-1].unbind()]
        steps = zip(
            before,
            factors.unbind(),
            dz.unflatten(2, (-1, size)).unbind(),
            dz.unbind(),
            dx.unbind(),
            [None] * length if slopes is None else slopes.unbind(),
            strict=True,
        )
        for before_step, factor, parts, here, inner, slope in reversed(list(steps)):
            torch.mul(factor, dh.unsqueeze(1), out=parts)
            if weight is not None:
                torch.mm(here, weight, out=inner).mul_(slope)
            dh = torch.addmm(before_step, inner, weight_hh)
        grads = [dx.transpose(0, 1), dh, dx.flatten(0, 1).t() @ self.states[:-1].flatten(0, 1)]
        flat = dz.flatten(0, 1)
        grads.append(None if self.inner is None else flat.t() @ self.inner.flatten(0, 1))
        grads.append(None if bias is None else flat.sum(0))
        grads.append(None if timespans is None else self._timespans(arrays, dz, size))
        return grads

    def _timespans(self, arrays: Sequence[Tensor], dz: Tensor, size: int) -> Tensor:
        slow = self.z[..., 2 * size : -size]
        each = (dz[..., -size:] * slow).sum(-1, keepdim=True).transpose(0, 1)
        return each if len(arrays[5]) == len(each) else each.sum(0, keepdim=True)


def _without_gate(f1: Tensor, f2: Tensor, t: Tensor, out: Tensor) -> None:
    torch.addcmul(f1, t, f2, out=out).sub_(t, alpha=0.5)


class Liquid:
    """Forward and backward pass of `liquid` (LTC cells)."""

    def forward(
        self,
        x: Tensor,
        v0: Tensor,
        capacity: Tensor,
        slopes: Tensor,
        offsets: Tensor,
        weights: Tensor,
    ) -> Tensor:
        """Return the potentials, (batch, time, neurons)."""
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

    def backward(self, arrays: Sequence[Tensor], g: Tensor) -> list[Tensor | None]:
        """Return the gradients of all arrays."""
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
        for before_step, factor, parts, here, currents, inner, slope in reversed(list(steps)):
            torch.mul(factor, dv.unsqueeze(1), out=parts)
            torch.mm(here, weights, out=inner).mul_(slope)
            dv = torch.addmm(before_step, inner, slopes).addcmul_(currents, capacity)
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
