"""Selective scan of a state space model as Triton kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.torch.kernels.launching import (
    cdiv,
    new_sums,
    next_power,
    on_device,
)
from ember_ml.backend.torch.kernels.launching import fused as fused

CHUNK = 64
FORWARD, BACKWARD = 512, 256
"""States of a program instance; twice as many spill registers on some GPUs."""
MAX_STATES = 64


def takes(u: Tensor, a: Tensor) -> bool:
    """Return whether the kernels take these shapes: not empty, and within 32 bits an example.

    Args:
        u: Input, (batch, time, channels).
        a: Decay rates, (channels, states).
    """
    return u.numel() > 0 and 0 < a.shape[1] <= MAX_STATES and u[0].numel() < 1 << 31


def tuning(states: int, elements: int) -> tuple[int, int]:
    """Return the channels of a program instance and the padded number of states.

    Args:
        states: Number of states of a channel.
        elements: Number of states of an instance that fit its registers.
    """
    padded = next_power(states)
    return max(4, min(32, elements // padded)), padded


def reference(
    u: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the output and the last state, in plain torch.

    Args:
        u: Input, (batch, time, channels).
        dt: Step sizes, in the shape of u.
        a: Decay rates, (channels, states).
        b: Input projection, (batch, time, states).
        c: Output projection, in the shape of b.
        d: Skip connection, (channels,). Default: none.
        state: State before the first step, (batch, channels, states). Default: zeros.
    """
    h = u.new_zeros(u.shape[0], *a.shape) if state is None else state
    outputs = []
    for t in range(u.shape[1]):
        entry = (dt[:, t] * u[:, t]).unsqueeze(2) * b[:, t].unsqueeze(1)
        h = torch.exp(dt[:, t].unsqueeze(2) * a) * h + entry
        outputs.append((h * c[:, t].unsqueeze(1)).sum(2))
    y = torch.stack(outputs, 1)
    return y if d is None else y + d * u, h


@torch.library.custom_op("ember_ml::triton_selective_scan", mutates_args=())
def forward(
    u: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results of `reference`, and the state before each chunk for the backward pass."""
    from ember_ml.backend.torch.kernels.programs import selective_scan as programs

    y, final, saved = _empty(u, a)
    batch, length, channels = u.shape
    block, padded = tuning(a.shape[1], FORWARD)
    with on_device(u):
        programs.scan[(cdiv(channels, block), batch)](
            *(u, dt, a.contiguous(), b.contiguous(), c.contiguous()),
            *(None if x is None else x.contiguous() for x in (d, state)),
            *(y, final, saved, length, channels, a.shape[1], CHUNK, saved.shape[1]),
            *(*u.stride(), *dt.stride()),
            HAS_D=d is not None,
            HAS_FIRST=state is not None,
            BLOCK=block,
            STATES=padded,
        )
    return y, final, saved


@torch.library.custom_op("ember_ml::triton_selective_scan_backward", mutates_args=())
def backward(
    u: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None,
    saved: Tensor,
    g: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of u, dt, a, b, c and d.

    Args:
        u: Input.
        dt: Step sizes.
        a: Decay rates.
        b: Input projection.
        c: Output projection.
        d: Skip connection. None: none.
        saved: State before each chunk.
        g: Gradient of the output.
    """
    from ember_ml.backend.torch.kernels.programs import selective_scan as programs

    batch, length, channels = u.shape
    states = a.shape[1]
    block, padded = tuning(states, BACKWARD)
    blocks = cdiv(channels, block)
    grad_u, grad_dt = u.new_empty(u.shape), dt.new_empty(dt.shape)
    work = new_sums(u, batch, CHUNK, channels, states)
    grad_a, grad_d = new_sums(u, batch, channels, states), new_sums(u, batch, channels)
    grad_b, grad_c = (new_sums(u, blocks, batch, length, states) for _ in range(2))
    with on_device(u):
        programs.gradients[(blocks, batch)](
            *(u, dt, a.contiguous(), b.contiguous(), c.contiguous()),
            *(None if d is None else d.contiguous(), g, saved, work),
            *(grad_u, grad_dt, grad_a, grad_b, grad_c, grad_d),
            *(batch, length, channels, states, CHUNK, saved.shape[1]),
            *(*u.stride(), *dt.stride(), *g.stride()),
            HAS_D=d is not None,
            BLOCK=block,
            STATES=padded,
        )
    sums = zip((grad_a, grad_b, grad_c, grad_d), (a, b, c, u), strict=True)
    return (grad_u, grad_dt, *(total.sum(0).to(x.dtype) for total, x in sums))


def _empty(u: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return arrays for the output, the last state and the states before the chunks."""
    chunks = cdiv(u.shape[1], CHUNK)
    final = new_sums(u, u.shape[0], *a.shape)
    return u.new_empty(u.shape), final, new_sums(u, u.shape[0], chunks, *a.shape)


@forward.register_fake
def _(
    u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Any = None, state: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(u, a)


@backward.register_fake
def _(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Any, saved: Any, g: Any) -> Any:
    return (*(x.new_empty(x.shape) for x in (u, dt, a, b, c)), u.new_empty(u.shape[2:]))


def run(*operands: Any) -> tuple[Tensor, Tensor]:
    """Return the output, and the states for `pull`."""
    y, _, saved = forward(*operands)
    return y, saved


def pull(operands: Any, saved: Any, g: Tensor) -> list[Tensor | None]:
    """Return the gradients of the operands.

    Args:
        operands: u, dt, a, b, c and d.
        saved: Second result of `run`.
        g: Gradient of the output.
    """
    *grads, grad_d = backward(*operands, saved, g)
    return [*grads, None if operands[5] is None else grad_d]


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:6], output[2])


def _pull(ctx: Any, g: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    *operands, saved = ctx.saved_tensors
    return *pull(operands, saved, g), None


forward.register_autograd(_pull, setup_context=_save)
