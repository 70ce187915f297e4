"""Linear attention with decay as Triton kernels: GLA, RWKV, retention and linear attention."""

from __future__ import annotations

from functools import partial
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
    precision,
)

CHUNK = 16
MAX_KEYS = 128
FORWARD, BACKWARD = 64, 32
"""Largest block of value features of a program instance."""


def takes(query: Tensor, value: Tensor) -> bool:
    """Return whether the kernels take these shapes: not empty, with states that fit registers.

    Args:
        query: (batch, heads, time, key features).
        value: (batch, heads, time, value features).
    """
    sizes = query.shape[3], value.shape[3]
    return query.numel() > 0 and value.numel() > 0 and sizes[0] <= MAX_KEYS


def reference(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, strict: bool) -> Tensor:
    """Return the outputs step by step, in plain torch.

    Args:
        q: Queries, (batch, heads, time, key features).
        k: Keys, in the shape of the queries.
        v: Values, (batch, heads, time, value features).
        decay: Log decays, (batch or 1, heads, time, key features or 1). None: no decay.
        strict: Whether each position reads the state from before its own update.
    """
    state = q.new_zeros(*q.shape[:2], q.shape[3], v.shape[3])
    outputs = []
    for t in range(q.shape[2]):
        before = state
        if decay is not None:
            state = decay[:, :, t].clamp(min=shared.MIN_LOG_DECAY).exp().unsqueeze(-1) * state
        state = state + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
        read = before if strict else state
        outputs.append((q[:, :, t].unsqueeze(-1) * read).sum(-2))
    return torch.stack(outputs, 2)


def apply(
    plain: Any, q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, strict: bool
) -> Tensor:
    """Return the outputs, like `reference`.

    Args:
        plain: The same function in ops that torch differentiates any number of times.
        q: Queries.
        k: Keys.
        v: Values.
        decay: Log decays. None: no decay.
        strict: Whether each position reads the state from before its own update.
    """
    options: dict[str, Any] = {"strict": strict}
    return fused(
        partial(forward, **options),
        partial(_run, **options),
        partial(pull, **options),
        partial(plain, **options),
        *(q, k, v, decay),
    )


@torch.library.custom_op("ember_ml::triton_gated_linear_attention", mutates_args=())
def forward(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, strict: bool) -> Tensor:
    """Return the outputs."""
    from ember_ml.backend.torch.kernels.programs import gated_linear_attention as programs

    y = v.new_empty(v.shape)
    q, k, v, g = (_lines(x) for x in (q, k, v, decay))
    sizes = _sizes(q, v, FORWARD)
    with on_device(v):
        programs.attend[(cdiv(v.shape[3], sizes["V"]), v.shape[0] * v.shape[1])](
            *(q, k, v, g, y, *_shape(q, v)),
            *(*q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *_strides(g, v)),
            STRICT=strict,
            MODE=_mode(g),
            PRECISION=precision(),
            **sizes,
        )
    return y


@torch.library.custom_op("ember_ml::triton_gated_linear_attention_backward", mutates_args=())
def backward(
    q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, g: Tensor, strict: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v and the decay.

    Args:
        q: Queries.
        k: Keys.
        v: Values.
        decay: Log decays. None: no decay.
        g: Gradient of the outputs.
        strict: Whether each position reads the state from before its own update.
    """
    from ember_ml.backend.torch.kernels.programs import gated_linear_attention as programs

    dtype = q.dtype
    q, k, v, gates = (_lines(x) for x in (q, k, v, decay))
    sizes = _sizes(q, v, BACKWARD)
    blocks = cdiv(v.shape[3], sizes["V"])
    dq, dk = (new_sums(q, blocks, *q.shape) for _ in range(2))
    dv = v.new_empty(v.shape)
    options = {"STRICT": strict, "MODE": _mode(gates), "PRECISION": precision(), **sizes}
    grid = blocks, v.shape[0] * v.shape[1]
    g = g.contiguous()
    strides = *k.stride()[:3], *v.stride()[:3], *_strides(gates, v)
    with on_device(v):
        programs.query_gradients[grid](
            *(k, v, gates, g, dq, *_shape(q, v), *strides),
            **options,
        )
        programs.key_gradients[grid](
            *(q, k, v, gates, g, dk, dv, *_shape(q, v), *q.stride()[:3], *strides),
            **options,
        )
    dq, dk = dq.sum(0), dk.sum(0)
    of_decay = q.new_empty(0) if decay is None else _decay_gradient(q * dq, k * dk, decay, strict)
    return dq.to(dtype), dk.to(dtype), dv, of_decay


def _decay_gradient(of_q: Tensor, of_k: Tensor, decay: Tensor, strict: bool) -> Tensor:
    """Return the gradient of the log decays.

    The decay of a position scales what later queries read from earlier keys: all that later
    queries read, without what they read from later keys.

    Args:
        of_q: Queries times their gradients, in float32.
        of_k: Keys times their gradients.
        decay: Log decays.
        strict: Whether each position reads the state from before its own update.
    """
    if decay.shape[3] == 1:
        of_q, of_k = of_q.sum(3, keepdim=True), of_k.sum(3, keepdim=True)
    total = (of_q - of_k).flip(2).cumsum(2).flip(2)
    total = total - of_q if strict else total
    total = total.masked_fill(decay < shared.MIN_LOG_DECAY, 0.0)
    if decay.shape[0] != total.shape[0]:
        total = total.sum(0, keepdim=True)
    return total.to(decay.dtype)


def _lines(x: Any) -> Any:
    """Return the array with contiguous features."""
    return x if x is None or x.stride(3) == 1 else x.contiguous()


def _mode(decay: Tensor | None) -> str:
    if decay is None:
        return "none"
    return "head" if decay.shape[3] == 1 else "feature"


def _shape(q: Tensor, v: Tensor) -> tuple[Any, ...]:
    return q.shape[1], q.shape[2], q.shape[3], v.shape[3], shared.MIN_LOG_DECAY


def _strides(decay: Tensor | None, v: Tensor) -> tuple[int, ...]:
    if decay is None:
        return 0, 0, 0
    return 0 if decay.shape[0] != v.shape[0] else decay.stride(0), *decay.stride()[1:3]


def _sizes(q: Tensor, v: Tensor, most: int) -> dict[str, int]:
    keys = max(16, next_power(q.shape[3]))
    block = max(16, min(most * 64 // max(keys, 64), next_power(v.shape[3])))
    return {"C": CHUNK, "K": keys, "V": block}


def _run(q: Tensor, k: Tensor, v: Tensor, decay: Any, strict: bool) -> tuple[Tensor, None]:
    return forward(q, k, v, decay, strict), None


def pull(operands: Any, _: Any, g: Tensor, strict: bool) -> list[Tensor | None]:
    """Return the gradients of the operands."""
    *grads, of_decay = backward(*operands, g, strict)
    return [*grads, None if operands[3] is None else of_decay]


@forward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, decay: Any, strict: bool) -> Tensor:
    return v.new_empty(v.shape)


@backward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, decay: Any, g: Any, strict: bool) -> Any:
    last = q.new_empty(0) if decay is None else decay.new_empty(decay.shape)
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), last


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *operands, ctx.strict = inputs
    ctx.save_for_backward(*operands)


def _pull(ctx: Any, g: Tensor) -> Any:
    return *pull(ctx.saved_tensors, None, g, ctx.strict), None


forward.register_autograd(_pull, setup_context=_save)
