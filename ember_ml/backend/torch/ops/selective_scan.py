"""Selective scan in cache-sized blocks; the states of the whole sequence are never stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ember_ml._core.errors import ShapeError
from ember_ml.backend import native_selective_scan
from ember_ml.backend.native_selective_scan import CHUNK
from ember_ml.backend.selective_scan import check
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.fusion import fused, fusible, is_eager
from ember_ml.backend.torch.native import frame
from ember_ml.backend.torch.nesting import needs_plain_ops
from ember_ml.backend.torch.opaque import opaque_scan
from ember_ml.backend.torch.ops.recurrence import linear_recurrence

_HALVES = (torch.float16, torch.bfloat16)
_BLOCK = 1 << 18  # elements of a block's states
_STEP = 1 << 12  # below this step size, parallel chunks of time are faster without the C kernels


def selective_scan(u, dt, a, b, c, d=None):
    operands = (u, dt, a, b, c, d)
    check(*operands)
    if _is_served(*operands):
        kernel = kernels.selective_scan
        return kernel.fused(kernel.forward, kernel.run, kernel.pull, _plain_half, *operands)
    if u.dtype in _HALVES:
        wide = [None if x is None else x.float() for x in operands]
        return selective_scan(*wide).to(u.dtype)
    return _scan(*operands, None)[0]


def selective_scan_with_state(u, dt, a, b, c, d, state):
    operands = (u, dt, a, b, c, d)
    check(*operands)
    if state.shape != (u.shape[0], *a.shape):
        raise ShapeError(
            f"selective_scan_with_state: state has shape {tuple(state.shape)}; expected (batch, "
            f"channels, states) = {(u.shape[0], *a.shape)}"
        )
    tracked = torch.is_grad_enabled() and any(x.requires_grad for x in (*operands, state))
    if not tracked and _is_served(*operands, state) and is_eager():
        y, last, _ = kernels.selective_scan.forward(*operands, state)
        return y, last.to(state.dtype)
    y, last = _scan(*operands, state.mT)
    return y, last.mT


def _scan(*operands: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output and the last state, (batch, states, channels)."""
    u, _, a, *_ = operands
    if not u.numel() or not a.numel():
        return _plain(*operands)
    if torch.compiler.is_compiling():
        opaque = u.device.type == "cpu" and u.dtype in (torch.float32, torch.float64)
        if opaque and not needs_plain_ops():
            return _opaque(*operands)[:2]
        return _plain(*operands)
    large = u.shape[0] * a.numel() >= _STEP
    if fusible(*operands) and (large or frame(*operands) is not None):
        return fused(_run, _pull, _plain, *operands)
    return _plain(*operands)


def _is_served(u: torch.Tensor, dt: Any, a: torch.Tensor, *rest: Any) -> bool:
    return kernels.serves(u, dt, a, *rest) and kernels.selective_scan.takes(u, a)


def _plain_half(*operands: Any) -> torch.Tensor:
    """Compute `_plain`, in float32 if the operands are in half precision."""
    if operands[0].dtype not in _HALVES:
        return _plain(*(*operands, None))[0]
    wide = [None if x is None else x.float() for x in operands]
    return _plain(*(*wide, None))[0].to(operands[0].dtype)


def _plain(
    u: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor | None,
    state: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    entries = (dt * u).unsqueeze(2) * b.unsqueeze(3)
    h, last = linear_recurrence(torch.exp(dt.unsqueeze(2) * a.mT), entries, state)
    y = (h * c.unsqueeze(3)).sum(2)
    return y if d is None else y + d * u, last


def _blocks(batch: int, step: int) -> Iterator[slice]:
    """Split the batch so that one chunk of time fits the cache."""
    size = max(1, _BLOCK // (CHUNK * step))
    return (slice(at, min(at + size, batch)) for at in range(0, batch, size))


def _chunks(length: int) -> list[slice]:
    return [slice(at, min(at + CHUNK, length)) for at in range(0, length, CHUNK)]


def _walk(
    dt: Any, a: torch.Tensor, scaled: Any, b: torch.Tensor, state: torch.Tensor
) -> tuple[Any, Any]:
    """Return the decays and the states of a chunk, (batch, time, states, channels)."""
    decays = torch.mul(dt.unsqueeze(2), a).exp_()
    h = torch.mul(scaled.unsqueeze(2), b.unsqueeze(3))
    for decay, entry in zip(decays.unbind(1), h.unbind(1), strict=True):
        state = entry.addcmul_(decay, state)
    return decays, h


def _run(*operands: Any) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the output and the last state, and the state after each whole chunk."""
    access, state = frame(*operands), operands[6]
    if access is None:
        return _run_blocks(*operands)
    start = None if state is None else state.contiguous()
    y, last, saved = native_selective_scan.forward(access, operands[:6], start)
    return (y, last), saved


def _run_blocks(
    u: torch.Tensor,
    dt: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    d: torch.Tensor | None,
    initial: torch.Tensor | None,
) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    a = a.mT.contiguous()
    y = torch.mul(u, d) if d is not None else torch.zeros_like(u)
    scaled = dt * u
    length = u.shape[1]
    saved = u.new_empty((u.shape[0], length // CHUNK, *a.shape))
    last = u.new_zeros((u.shape[0], *a.shape)) if initial is None else initial.clone()
    for rows in _blocks(u.shape[0], a.numel()):
        state = last[rows]
        for at, part in enumerate(_chunks(length)):
            _, h = _walk(dt[rows, part], a, scaled[rows, part], b[rows, part], state)
            state = h[:, -1].clone()
            if part.stop - part.start == CHUNK:
                saved[rows, at] = state
            y[rows, part] += h.mul_(c[rows, part].unsqueeze(3)).sum(2)
        last[rows] = state
    return (y, last.contiguous()), saved


def _pull(operands: Any, saved: Any, g: torch.Tensor, g_last: torch.Tensor) -> list[Any]:
    """Return the gradients, backward in time, recomputing the states."""
    access, state = frame(*operands, saved, g, g_last), operands[6]
    if access is None:
        return _pull_blocks(operands, saved, g, g_last)
    start = None if state is None else state.contiguous()
    last = g_last.contiguous()
    return native_selective_scan.adjoint(access, operands[:6], start, saved, g, last)


def _pull_blocks(operands: Any, saved: Any, g: torch.Tensor, g_last: torch.Tensor) -> list[Any]:
    u, dt, a, b, c, d, initial = operands
    a = a.mT.contiguous()
    scaled = dt * u
    grad_scaled, grad_dt = torch.empty_like(u), torch.empty_like(dt)
    grad_a, grad_b, grad_c = torch.zeros_like(a), torch.empty_like(b), torch.empty_like(c)
    grad_state = torch.empty_like(g_last)
    for rows in _blocks(u.shape[0], a.numel()):
        later = g_last[rows]
        for at, part in reversed(list(enumerate(_chunks(u.shape[1])))):
            place = rows, part
            state = torch.zeros_like(later) if initial is None else initial[rows]
            state = saved[rows, at - 1] if at else state
            decays, h = _walk(dt[place], a, scaled[place], b[place], state)
            into = torch.mul(g[place].unsqueeze(2), c[place].unsqueeze(3))
            later = _back(into, decays, later)
            grad_c[place] = (h * g[place].unsqueeze(2)).sum(3)
            grad_b[place] = (into * scaled[place].unsqueeze(2)).sum(3)
            grad_scaled[place] = (into * b[place].unsqueeze(3)).sum(2)
            into.mul_(decays)  # now the gradient of the exponents
            into[:, 1:].mul_(h[:, :-1])
            into[:, 0].mul_(state)
            grad_dt[place] = (into * a).sum(2)
            grad_a += into.mul_(dt[place].unsqueeze(2)).sum((0, 1))
        grad_state[rows] = later
    grad_dt.addcmul_(grad_scaled, u)
    grad_u = grad_scaled.mul_(dt)
    if d is not None:
        grad_u.addcmul_(g, d)
    grad_d = None if d is None else (g * u).sum((0, 1))
    last = None if initial is None else grad_state
    return [grad_u, grad_dt, grad_a.mT, grad_b, grad_c, grad_d, last]


def _back(into: Any, decays: Any, later: Any) -> torch.Tensor:
    """Propagate the gradients of a chunk's states backward; return that of the chunk before."""
    into[:, -1] += later
    steps, factors = into.unbind(1), decays.unbind(1)
    for at in range(len(steps) - 2, -1, -1):
        steps[at].addcmul_(factors[at + 1], steps[at + 1])
    return steps[0] * factors[0]


_SCHEMA = "Tensor u, Tensor dt, Tensor a, Tensor b, Tensor c, Tensor? d, Tensor? state"


def _fake(
    u: torch.Tensor, dt: Any, a: torch.Tensor, b: Any, c: Any, d: Any, state: Any
) -> tuple[torch.Tensor, ...]:
    model = (a.shape[1], a.shape[0])
    return (
        u.new_empty(u.shape),
        u.new_empty((u.shape[0], *model)),
        u.new_empty((u.shape[0], u.shape[1] // CHUNK, *model)),
    )


# A compiler would unroll the steps.
_opaque = opaque_scan("selective_scan", _SCHEMA, _run, _pull, _fake)
