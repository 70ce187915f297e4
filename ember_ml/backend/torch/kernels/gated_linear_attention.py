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
)

MAX_KEYS = 128
STATES = 1024
"""Elements of the state of a program instance."""
SEGMENT = 64
"""Steps of a segment; segments are computed in parallel if there are few heads."""
MANY = 1 << 12
"""Number of program instances that fill a GPU without segments."""


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
    q, k, v, decay = (_lines(x) for x in (q, k, v, decay))
    launch = _Launch(q, v, decay, strict)
    with on_device(v):
        first = launch.first(k, v, reverse=False)
        programs.read[launch.grid](
            *(q, k, v, decay, first, y, *launch.sizes),
            *launch.strides(q, k, v),
            HAS_FIRST=first is not None,
            QUERIES=False,
            **launch.options,
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
    q, k, v, g, decay = (_lines(x) for x in (q, k, v, g, decay))
    launch = _Launch(q, v, decay, strict)
    dq, dk = (new_sums(q, launch.grid[0], *q.shape) for _ in range(2))
    dv = v.new_empty(v.shape)
    with on_device(v):
        first = launch.first(k, v, reverse=False)
        programs.read[launch.grid](
            *(g, k, v, decay, first, dq, *launch.sizes),
            *launch.strides(g, k, v),
            HAS_FIRST=first is not None,
            QUERIES=True,
            **launch.options,
        )
        first = launch.first(q, g, reverse=True)
        programs.key_gradients[launch.grid](
            *(q, k, v, g, decay, first, dk, dv, *launch.sizes),
            *launch.strides(q, k, v, g),
            HAS_FIRST=first is not None,
            **launch.options,
        )
    dq, dk = dq.sum(0), dk.sum(0)
    of_decay = q.new_empty(0) if decay is None else _decay_gradient(q * dq, k * dk, decay, strict)
    return dq.to(dtype), dk.to(dtype), dv, of_decay


class _Launch:
    """Grid, sizes and constants of the programs.

    Args:
        q: Queries.
        v: Values.
        decay: Log decays, or None.
        strict: Whether each position reads the state from before its own update.
    """

    def __init__(self, q: Tensor, v: Tensor, decay: Tensor | None, strict: bool) -> None:
        self.decay, self.strict = decay, strict
        batch, heads, length, keys = q.shape
        padded = next_power(keys)
        block = min(next_power(v.shape[3]), STATES // padded)
        blocks = cdiv(v.shape[3], block)
        segment = length if blocks * batch * heads >= MANY else SEGMENT
        self.grid = blocks, batch * heads, cdiv(length, segment)
        self.shape = batch, heads, self.grid[2], keys
        self.sizes = heads, length, segment, keys, v.shape[3], shared.MIN_LOG_DECAY
        self.options: dict[str, Any] = {"STRICT": strict, "K": padded, "V": block}
        self.options["MODE"] = "none"
        if decay is not None:
            self.options["MODE"] = "head" if decay.shape[3] == 1 else "feature"

    def strides(self, *arrays: Tensor) -> list[int]:
        """Return the strides of arrays (batch, heads, time, features) and of the decay."""
        strides = [stride for x in arrays for stride in x.stride()[:3]]
        if self.decay is None:
            return [*strides, 0, 0, 0]
        batch = 0 if self.decay.shape[0] == 1 else self.decay.stride(0)
        return [*strides, batch, *self.decay.stride()[1:3]]

    def first(self, x: Tensor, z: Tensor, reverse: bool) -> Tensor | None:
        """Return the state before each segment, in the order of the walk; None for one segment.

        Args:
            x: Keys; backward in time, queries.
            z: Values; backward in time, gradients of the outputs.
            reverse: Whether to walk backward in time.
        """
        from ember_ml.backend.torch.kernels import linear_recurrence
        from ember_ml.backend.torch.kernels.programs import gated_linear_attention as programs

        if self.grid[2] == 1:
            return None
        states, totals = new_sums(x, *self.shape, z.shape[3]), new_sums(x, *self.shape)
        programs.summarize[self.grid](
            *(x, z, self.decay, states, totals, *self.sizes),
            *self.strides(x, z),
            REVERSE=reverse,
            **self.options,
        )
        factors = totals.unsqueeze(-1).expand(states.shape)
        after, _ = linear_recurrence.forward(factors, states, None, 2, False)
        return torch.cat([torch.zeros_like(after[:, :, :1]), after[:, :, :-1]], 2)


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
