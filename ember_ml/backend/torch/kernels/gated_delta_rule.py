"""Delta rule with and without decay as Triton kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ember_ml.backend import linear_attention as shared
from ember_ml.backend.torch.kernels.launching import (
    cdiv,
    fused,
    new_sums,
    next_power,
    on_device,
)

CHUNK = 32
MAX_KEYS = 128
STATES = 512
"""Elements of the state of a program instance."""


def takes(query: Tensor, value: Tensor) -> bool:
    """Return whether the kernels take these shapes: not empty, with states that fit registers.

    Args:
        query: (batch, heads, time, key features).
        value: (batch, heads, time, value features).
    """
    return query.numel() > 0 and value.numel() > 0 and query.shape[3] <= MAX_KEYS


def reference(q: Tensor, k: Tensor, v: Tensor, rate: Tensor, decay: Tensor | None) -> Tensor:
    """Return the outputs step by step, in plain torch.

    Args:
        q: Queries, (batch, heads, time, key features).
        k: Keys, in the shape of the queries.
        v: Values, (batch, heads, time, value features).
        rate: Step sizes, (batch, heads, time, 1).
        decay: Log decays, (batch, heads, time, 1). None: no decay.
    """
    state = q.new_zeros(*q.shape[:2], q.shape[3], v.shape[3])
    outputs = []
    for t in range(q.shape[2]):
        if decay is not None:
            state = decay[:, :, t].clamp(min=shared.MIN_LOG_DECAY).exp().unsqueeze(-1) * state
        error = v[:, :, t] - (k[:, :, t].unsqueeze(-1) * state).sum(-2)
        state = state + (rate * k)[:, :, t].unsqueeze(-1) * error.unsqueeze(-2)
        outputs.append((q[:, :, t].unsqueeze(-1) * state).sum(-2))
    return torch.stack(outputs, 2)


def apply(plain: Any, *operands: Any) -> Tensor:
    """Return the outputs, like `reference`.

    Args:
        plain: The same function in ops that torch differentiates any number of times.
        operands: Arguments of `reference`.
    """
    return fused(forward, forward, pull, plain, *operands)


@torch.library.custom_op("ember_ml::triton_gated_delta_rule", mutates_args=())
def forward(
    q: Tensor, k: Tensor, v: Tensor, rate: Tensor, decay: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the outputs, and the state before each chunk for the backward pass."""
    from ember_ml.backend.torch.kernels.programs import gated_delta_rule as programs

    y, saved = _empty(q, v)
    grid, sizes, options = _launch(q, v, decay)
    with on_device(v):
        programs.scan[grid](*_whole(q, k, v, rate, decay), y, saved, *sizes, **options)
    return y, saved


@torch.library.custom_op("ember_ml::triton_gated_delta_rule_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, rate: Tensor, decay: Tensor | None, saved: Tensor, g: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v, rate and decay.

    Args:
        q: Queries.
        k: Keys.
        v: Values.
        rate: Step sizes.
        decay: Log decays. None: no decay.
        saved: State before each chunk.
        g: Gradient of the outputs.
    """
    from ember_ml.backend.torch.kernels.programs import gated_delta_rule as programs

    grid, sizes, options = _launch(q, v, decay)
    dq, dk = (new_sums(q, grid[0], *q.shape) for _ in range(2))
    drate, dg = (new_sums(q, grid[0], *rate.shape) for _ in range(2))
    dv = v.new_empty(v.shape)
    work = new_sums(q, grid[1], CHUNK, q.shape[3], v.shape[3])
    with on_device(v):
        programs.gradients[grid](
            *(*_whole(q, k, v, rate, decay, g), saved, work, dq, dk, dv, drate, dg, *sizes),
            **options,
            num_warps=8,
        )
    dq, dk, drate, dg = (x.sum(0).to(q.dtype) for x in (dq, dk, drate, dg))
    if decay is not None:
        dg = dg.masked_fill(decay < shared.MIN_LOG_DECAY, 0.0)
    return dq, dk, dv, drate, dg


def _launch(
    q: Tensor, v: Tensor, decay: Tensor | None
) -> tuple[tuple[int, int], tuple[Any, ...], dict[str, Any]]:
    """Return the grid, the sizes and the constants of the programs."""
    length, keys, values = q.shape[2], q.shape[3], v.shape[3]
    padded = next_power(keys)
    block = max(1, min(next_power(values), STATES // padded))
    sizes = length, CHUNK, cdiv(length, CHUNK), keys, values, shared.MIN_LOG_DECAY
    grid = cdiv(values, block), q.shape[0] * q.shape[1]
    return grid, sizes, {"HAS_DECAY": decay is not None, "K": padded, "V": block}


def _whole(*arrays: Tensor | None) -> list[Tensor | None]:
    return [None if x is None else x.contiguous() for x in arrays]


def _empty(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return arrays for the outputs and the states before the chunks."""
    chunks = cdiv(q.shape[2], CHUNK)
    return v.new_empty(v.shape), new_sums(q, *q.shape[:2], chunks, q.shape[3], v.shape[3])


def pull(operands: Any, saved: Any, g: Tensor) -> list[Tensor | None]:
    """Return the gradients of the operands.

    Args:
        operands: Arguments of `reference`.
        saved: Second result of `forward`.
        g: Gradient of the outputs.
    """
    *grads, of_decay = backward(*operands, saved, g)
    return [*grads, None if operands[4] is None else of_decay]


@forward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, rate: Tensor, decay: Any) -> tuple[Tensor, Tensor]:
    return _empty(q, v)


@backward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, rate: Tensor, decay: Any, saved: Any, g: Any) -> Any:
    return tuple(x.new_empty(x.shape) for x in (q, k, v, rate, rate))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs, output[1])


def _pull(ctx: Any, g: Tensor, _: Any) -> Any:
    *operands, saved = ctx.saved_tensors
    return tuple(pull(operands, saved, g))


forward.register_autograd(_pull, setup_context=_save)
