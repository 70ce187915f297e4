"""Linear recurrence h_t = a_t h_{t-1} + b_t as Triton kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ember_ml.backend.torch.kernels.launching import cdiv, on_device


class Tuning(NamedTuple):
    """Sizes of a launch.

    Attributes:
        block: Lanes of a program instance.
        warps: Warps of a program instance.
        chunk: Steps of a chunk.
    """

    block: int
    warps: int
    chunk: int


def tuning(lanes: int, length: int) -> Tuning:
    """Return the sizes for a number of independent lanes; many lanes fill a GPU without chunks.

    Args:
        lanes: Number of independent recurrences.
        length: Number of steps.
    """
    if lanes >= 1 << 16:
        return Tuning(128, 4, max(1, length))
    return Tuning(64, 2, 256) if lanes >= 1 << 12 else Tuning(32, 1, 64)


def reference(
    a: Tensor, b: Tensor, h0: Tensor | None, axis: int, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Return the states after each step, and the last one, in plain torch.

    Args:
        a: Factors.
        b: Inputs, in the shape of a.
        h0: State before the first step. None: zeros.
        axis: Time axis.
        reverse: Whether time runs backward.
    """
    state = torch.zeros_like(b.select(axis, 0)) if h0 is None else h0
    steps = list(zip(a.unbind(axis), b.unbind(axis), strict=True))[:: -1 if reverse else 1]
    states = []
    for factor, entry in steps:
        state = factor * state + entry
        states.append(state)
    return torch.stack(states[:: -1 if reverse else 1], axis), state


@torch.library.custom_op("ember_ml::triton_linear_recurrence", mutates_args=())
def forward(
    a: Tensor, b: Tensor, h0: Tensor | None, axis: int, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Return the states after each step, and the last one, like `reference`."""
    from ember_ml.backend.torch.kernels.programs import linear_recurrence as programs

    h, final = b.new_empty(b.shape), b.new_empty(b.shape[:axis] + b.shape[axis + 1 :])
    if not h.numel():
        return h, final.zero_() if h0 is None else final.copy_(h0)
    view = _Lanes(b.shape, axis)
    sizes = tuning(view.lanes, view.length)
    a, b = view.of(a), view.of(b)
    h0 = None if h0 is None else h0.contiguous()
    with on_device(b):
        chunks, first = _carried(view, sizes, a, b, h0, reverse, shifted=False)
        programs.states[(cdiv(view.lanes, sizes.block), chunks)](
            *(a, b, first, h, final),
            *(view.lanes, view.inner, view.length, sizes.chunk, *a.stride(), *b.stride()),
            REVERSE=reverse,
            HAS_FIRST=first is not None,
            BLOCK=sizes.block,
            num_warps=sizes.warps,
        )
    return h, final


@torch.library.custom_op("ember_ml::triton_linear_recurrence_backward", mutates_args=())
def backward(
    a: Tensor,
    h0: Tensor | None,
    h: Tensor,
    gh: Tensor,
    gf: Tensor | None,
    axis: int,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a, b and h0.

    Args:
        a: Factors.
        h0: State before the first step. None: zeros.
        h: States of the forward pass.
        gh: Gradient of h.
        gf: Gradient of the last state. None: zeros.
        axis: Time axis.
        reverse: Whether time runs backward.
    """
    from ember_ml.backend.torch.kernels.programs import linear_recurrence as programs

    grad_a, grad_b = h.new_empty(h.shape), h.new_empty(h.shape)
    grad_h0 = h.new_empty(h.shape[:axis] + h.shape[axis + 1 :])
    if not h.numel():
        return grad_a, grad_b, grad_h0.zero_() if gf is None else grad_h0.copy_(gf)
    view = _Lanes(h.shape, axis)
    sizes = tuning(view.lanes, view.length)
    a, gh, h = view.of(a), view.of(gh), h.contiguous()
    gf = None if gf is None else gf.contiguous()
    with on_device(h):
        chunks, first = _carried(view, sizes, a, gh, gf, not reverse, shifted=True)
        programs.gradients[(cdiv(view.lanes, sizes.block), chunks)](
            *(a, gh, h, None if h0 is None else h0.contiguous(), first, grad_a, grad_b, grad_h0),
            *(view.lanes, view.inner, view.length, sizes.chunk, *a.stride(), *gh.stride()),
            REVERSE=reverse,
            HAS_H0=h0 is not None,
            HAS_FIRST=first is not None,
            BLOCK=sizes.block,
            num_warps=sizes.warps,
        )
    return grad_a, grad_b, grad_h0


class _Lanes:
    """Arrays as (outer, time, inner).

    Args:
        shape: Shape of the arrays.
        axis: Time axis.
    """

    def __init__(self, shape: torch.Size, axis: int) -> None:
        self.length = shape[axis]
        self.outer, self.inner = shape[:axis].numel(), shape[axis + 1 :].numel()
        self.lanes = self.outer * self.inner

    def of(self, x: Tensor) -> Tensor:
        """Return the array in this shape, without a copy where its strides allow."""
        return x.reshape(self.outer, self.length, self.inner)


def _carried(
    view: _Lanes,
    sizes: Tuning,
    a: Tensor,
    b: Tensor,
    first: Tensor | None,
    reverse: bool,
    shifted: bool,
) -> tuple[int, Tensor | None]:
    """Return the number of chunks, and the state before each, (chunks, lanes)."""
    from ember_ml.backend.torch.kernels.programs import linear_recurrence as programs

    chunks = cdiv(view.length, sizes.chunk)
    if chunks == 1:
        return 1, first
    factors = a.new_empty((chunks, view.lanes), dtype=torch.float32)
    carried = torch.empty_like(factors)
    blocks = cdiv(view.lanes, sizes.block)
    programs.summarize[(blocks, chunks)](
        *(a, b, factors, carried),
        *(view.lanes, view.inner, view.length, sizes.chunk, *a.stride(), *b.stride()),
        REVERSE=reverse,
        SHIFTED=shifted,
        BLOCK=sizes.block,
        num_warps=sizes.warps,
    )
    programs.carry[(blocks,)](
        *(factors, carried, first, view.lanes, chunks),
        HAS_FIRST=first is not None,
        BLOCK=sizes.block,
        num_warps=sizes.warps,
    )
    return chunks, carried


@forward.register_fake
def _(a: Tensor, b: Tensor, h0: Tensor | None, axis: int, reverse: bool) -> tuple[Tensor, Tensor]:
    return b.new_empty(b.shape), b.new_empty(b.shape[:axis] + b.shape[axis + 1 :])


@backward.register_fake
def _(
    a: Tensor, h0: Any, h: Tensor, gh: Tensor, gf: Any, axis: int, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    first = h.new_empty(h.shape[:axis] + h.shape[axis + 1 :])
    return h.new_empty(h.shape), h.new_empty(h.shape), first


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    a, _, h0, ctx.axis, ctx.reverse = inputs
    ctx.save_for_backward(a, h0, output[0])
    ctx.set_materialize_grads(False)


def _pull(ctx: Any, gh: Tensor | None, gf: Tensor | None) -> tuple[Tensor | None, ...]:
    a, h0, h = ctx.saved_tensors
    gh = h.new_zeros(()).expand(h.shape) if gh is None else gh
    grad_a, grad_b, grad_h0 = backward(a, h0, h, gh, gf, ctx.axis, ctx.reverse)
    return grad_a, grad_b, None if h0 is None else grad_h0, None, None


forward.register_autograd(_pull, setup_context=_save)
