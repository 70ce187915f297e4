"""Linear recurrences: one fused step at a time, with parallel chunks if they are long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend import native_recurrence
from ember_ml.backend.recurrences import chunk_length, geometry
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.direct import direct_apply
from ember_ml.backend.torch.native import frame
from ember_ml.backend.torch.nesting import needs_plain_ops

_HALVES = (torch.float16, torch.bfloat16)
_WHOLE_STEP = 1 << 16  # from this step size on, a second pass does not pay off
_SHORT = 24
_NARROW = 8  # below this many contiguous elements, a copy with time first is faster


def linear_recurrence(a, b, h0=None, axis=1, reverse=False):
    shape, state, axis = geometry(a.shape, b.shape, None if h0 is None else h0.shape, axis)
    dtype = b.dtype
    if dtype in _HALVES and not kernels.serves(b, a, h0):
        a, b, h0 = a.float(), b.float(), None if h0 is None else h0.float()
    a, b = a.expand(shape), b.expand(shape)
    h0 = None if h0 is None else h0.expand(state)
    h, final = _implementation()(a, b, h0, axis, reverse)
    return (h, final) if h.dtype is dtype else (h.to(dtype), final.to(dtype))


def _implementation() -> Callable[..., Any]:
    """Return the implementation for a call."""
    if not torch.compiler.is_compiling():
        return _apply_recurrence
    return _doubled if needs_plain_ops() else _opaque


def _doubled(
    a: torch.Tensor, b: torch.Tensor, h0: Any, axis: int, reverse: bool
) -> tuple[Any, Any]:
    """Compute in plain ops by doubling: each pass combines twice as many steps."""
    if reverse:
        h, final = _doubled(a.flip(axis), b.flip(axis), h0, axis, False)
        return h.flip(axis), final
    length = b.shape[axis]
    if h0 is not None and length:
        first = b.narrow(axis, 0, 1) + a.narrow(axis, 0, 1) * h0.unsqueeze(axis)
        b = torch.cat([first, b.narrow(axis, 1, length - 1)], axis)
    span = 1
    while span < length:
        late = length - span
        joined = b.narrow(axis, span, late) + a.narrow(axis, span, late) * b.narrow(axis, 0, late)
        product = a.narrow(axis, span, late) * a.narrow(axis, 0, late)
        b = torch.cat([b.narrow(axis, 0, span), joined], axis)
        a = torch.cat([a.narrow(axis, 0, span), product], axis)
        span *= 2
    if not length:
        empty = b.new_zeros(b.shape[:axis] + b.shape[axis + 1 :])
        return b, empty if h0 is None else h0
    return b, b.select(axis, -1)


def _forward(
    a: torch.Tensor, b: torch.Tensor, h0: Any, axis: int, reverse: bool
) -> tuple[Any, Any]:
    if kernels.serves(b, a, h0):
        return kernels.linear_recurrence.forward(a, b, h0, axis, reverse)
    native = frame(a, b, h0)
    if native is not None and b.numel():
        return native_recurrence.forward(native, a, b, h0, tuple(b.shape), axis, reverse)
    out = _empty(b, axis)
    state = b.new_zeros(b.shape[:axis] + b.shape[axis + 1 :]) if h0 is None else h0
    return out, _fill((a, b, out), state, axis, reverse, shifted=False).clone()


def _empty(like: torch.Tensor, axis: int) -> torch.Tensor:
    """Allocate a result, with time as the first axis in memory where steps would be scattered."""
    shape = [*like.shape]
    if _inner(like, axis) >= _NARROW or axis == 0 or kernels.serves(like):
        return like.new_empty(shape)
    return like.new_empty([shape.pop(axis), *shape]).movedim(0, axis)


def _inner(x: torch.Tensor, axis: int) -> int:
    return x.shape[axis + 1 :].numel()


def _fill(
    arrays: Any, state: torch.Tensor, axis: int, reverse: bool, shifted: bool
) -> torch.Tensor:
    """Write the recurrence of (a, b, out) into out; return the state after the last step.

    A step computes h = a h' + b from the state h', and h is the next state. If `shifted`, it
    computes h = h' + b, and a h is the next state: in reverse, this is the adjoint.
    """
    out = arrays[2]
    length = out.shape[axis]
    if length <= _SHORT or out.numel() // length >= _WHOLE_STEP:
        return _walk(_steps(arrays, axis, reverse), state, shifted)
    size = chunk_length(length)
    first, rest = _cut(arrays, axis, length - length % size, reverse)
    chunks = [x.unflatten(axis, (-1, size)) for x in first]
    a, b, out = _steps(chunks, axis + 1, reverse)
    local = _walk((a, b, [torch.empty_like(out[0])] * size), None, shifted)
    entering = _entering(chunks[0].prod(axis + 1), local, state, axis, reverse)
    leaving = _walk((a, b, out), entering, shifted)
    return _walk(_steps(rest, axis, reverse), leaving.select(axis, 0 if reverse else -1), shifted)


def _entering(
    a: torch.Tensor, b: torch.Tensor, state: torch.Tensor, axis: int, reverse: bool
) -> torch.Tensor:
    """Return the initial state of each chunk, by a recurrence over the chunks."""
    out = torch.empty_like(b)
    begin = out.select(axis, -1 if reverse else 0)
    begin.zero_() if state is None else begin.copy_(state)
    early, late = _neighbors(out.shape[axis], reverse)
    _fill(
        (a.narrow(axis, *early), b.narrow(axis, *early), out.narrow(axis, *late)),
        state,
        axis,
        reverse,
        shifted=False,
    )
    return out


def _cut(arrays: Any, axis: int, whole: int, reverse: bool) -> tuple[list[Any], list[Any]]:
    """Split off the first `whole` steps in the direction of the recurrence."""
    rest = arrays[0].shape[axis] - whole
    at, other = (rest, 0) if reverse else (0, whole)
    return (
        [x.narrow(axis, at, whole) for x in arrays],
        [x.narrow(axis, other, rest) for x in arrays],
    )


def _steps(arrays: Any, axis: int, reverse: bool) -> list[Any]:
    return [x.unbind(axis)[::-1] if reverse else x.unbind(axis) for x in arrays]


def _walk(steps: Any, state: torch.Tensor, shifted: bool) -> torch.Tensor:
    addcmul = torch.addcmul
    factor = None
    for a, b, out in zip(*steps, strict=True):
        if state is None:
            out.copy_(b)
        elif shifted and factor is None:
            torch.add(b, state, out=out)
        else:
            addcmul(b, factor if shifted else a, state, out=out)
        factor, state = a, out
    return state if factor is None or not shifted else state * factor


def _adjoint(
    a: torch.Tensor, h0: Any, h: torch.Tensor, gh: Any, gf: Any, axis: int, reverse: bool
) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of a, b and h0, by the shifted recurrence in reverse."""
    if kernels.serves(h, a, h0, gh, gf):
        grad_a, b, start = kernels.linear_recurrence.backward(a, h0, h, gh, gf, axis, reverse)
        return grad_a, b, None if h0 is None else start
    native = frame(a, h0, h, gh, gf)
    if native is not None and h.numel():
        return native_recurrence.adjoint(native, a, h0, h, gh, gf, axis, reverse)
    b, grad_a = _empty(h, axis), torch.empty_like(h)
    start = _fill((a.conj().resolve_conj(), gh, b), gf, axis, not reverse, shifted=True)
    early, late = _neighbors(h.shape[axis], reverse)
    torch.mul(b.narrow(axis, *late), h.narrow(axis, *early).conj(), out=grad_a.narrow(axis, *late))
    first = grad_a.select(axis, -1 if reverse else 0)
    if h0 is None:
        first.zero_()
        return grad_a, b, None
    torch.mul(b.select(axis, -1 if reverse else 0), h0.conj(), out=first)
    return grad_a, b, start


def _neighbors(length: int, reverse: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (start, length) of the steps with a successor, and of those with a predecessor."""
    early, late = (0, length - 1), (1, length - 1)
    return (late, early) if reverse else (early, late)


def _previous(h: torch.Tensor, h0: Any, axis: int, reverse: bool) -> torch.Tensor:
    """Return the state before each step."""
    early, _ = _neighbors(h.shape[axis], reverse)
    before = torch.zeros_like(h.select(axis, 0)) if h0 is None else h0
    parts = [before.unsqueeze(axis), h.narrow(axis, *early)]
    return torch.cat(parts[::-1] if reverse else parts, axis)


def _pull(
    apply: Callable[..., Any],
    a: torch.Tensor,
    h0: Any,
    h: torch.Tensor,
    gh: Any,
    gf: Any,
    axis: int,
    reverse: bool,
) -> tuple[torch.Tensor | None, ...]:
    """Return the same gradients as `_adjoint`, in steps that can be differentiated again."""
    _, late = _neighbors(h.shape[axis], reverse)
    one = torch.ones_like(h.select(axis, 0)).unsqueeze(axis)
    factors = [a.narrow(axis, *late), one]
    shifted = torch.cat(factors[::-1] if reverse else factors, axis).conj()
    b, start = apply(shifted, gh, gf, axis, not reverse)
    grad_h0 = None if h0 is None else start * a.select(axis, -1 if reverse else 0).conj()
    return b * _previous(h, h0, axis, reverse).conj(), b, grad_h0


def _gradients(apply: Callable[..., Any], saved: Any, gh: Any, gf: Any, axis: int, reverse: bool):
    a, h0, h = saved
    if gh is None:
        gh = h.new_zeros(()).expand(h.shape)
    if h.shape[axis] == 0:
        return gh, gh, None if h0 is None else gf
    recorded = torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0
    if recorded or torch.compiler.is_compiling():
        return _pull(apply, a, h0, h, gh, gf, axis, reverse)
    if any(x is not None and torch._C._functorch.is_legacy_batchedtensor(x) for x in (gh, gf)):
        return _pull(_unrolled, a, h0, h, gh, gf, axis, reverse)
    return _adjoint(a, h0, h, gh, gf, axis, reverse)


def _unrolled(
    a: torch.Tensor, b: torch.Tensor, state: torch.Tensor, axis: int, reverse: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute in plain steps, for `torch.autograd.grad(is_grads_batched=True)`."""
    out = []
    for factor, entry in zip(*_steps((a, b), axis, reverse), strict=True):
        state = entry if state is None else factor * state + entry
        out.append(state)
    return torch.stack(out[::-1] if reverse else out, axis), state


def _batched(apply: Callable[..., Any], info: Any, in_dims: Any, a, b, h0, axis, reverse):
    """Batch the operands along a new first axis."""
    a, b, h0 = (
        x if x is None else (x.unsqueeze(0) if at is None else x.movedim(at, 0))
        for x, at in zip((a, b, h0), in_dims, strict=False)
    )
    shape = (info.batch_size, *b.shape[1:])
    state = shape[: axis + 1] + shape[axis + 2 :]
    h0 = None if h0 is None else h0.expand(state)
    return apply(a.expand(shape), b.expand(shape), h0, axis + 1, reverse), (0, 0)


class _Recurrence(torch.autograd.Function):  # type: ignore[misc]
    """Recurrence with its adjoint; a, b and h0 have their full shapes."""

    @staticmethod
    def forward(
        a: torch.Tensor, b: torch.Tensor, h0: Any, axis: int, reverse: bool
    ) -> torch.Tensor:
        return _forward(a, b, h0, axis, reverse)

    @staticmethod
    def setup_context(ctx: Any, inputs: torch.Tensor, output: Any) -> None:
        a, _, h0, ctx.axis, ctx.reverse = inputs
        ctx.save_for_backward(a, h0, output[0])
        ctx.save_for_forward(a, h0, output[0])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gh: Any, gf: Any) -> tuple[torch.Tensor | None, ...]:
        grads = _gradients(_Recurrence.apply, ctx.saved_tensors, gh, gf, ctx.axis, ctx.reverse)
        return *grads, None, None

    @staticmethod
    def jvp(ctx: Any, da: Any, db: Any, dh0: Any, *rest: Any) -> torch.Tensor:
        a, h0, h = ctx.saved_tensors
        change = h.new_zeros(()).expand(h.shape) if db is None else db
        if da is not None and h.shape[ctx.axis]:
            change = change + da * _previous(h, h0, ctx.axis, ctx.reverse)
        return _Recurrence.apply(a, change, dh0, ctx.axis, ctx.reverse)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> torch.Tensor:
        return _batched(_Recurrence.apply, info, in_dims, *args)


_apply_recurrence = direct_apply(_Recurrence)


def _run_opaque(
    a: torch.Tensor, b: torch.Tensor, h0: Any, axis: int, reverse: bool
) -> tuple[Any, Any]:
    h, last = _forward(a, b, h0, axis, reverse)
    return h.contiguous(), last.contiguous()


# A compiler would unroll the steps above, so it sees the recurrence as one op with its gradient.
_opaque = torch.library.custom_op(
    "ember_ml::linear_recurrence",
    _run_opaque,
    mutates_args=(),
    schema="(Tensor a, Tensor b, Tensor? h0, int axis, bool reverse) -> (Tensor, Tensor)",
)


@_opaque.register_fake
def _(a, b, h0, axis, reverse):
    return b.new_empty(b.shape), b.new_empty(b.shape[:axis] + b.shape[axis + 1 :])


def _save(ctx: Any, inputs: torch.Tensor, output: Any) -> None:
    a, _, h0, ctx.axis, ctx.reverse = inputs
    ctx.save_for_backward(a, h0, output[0])


def _backward(ctx: Any, gh: Any, gf: Any) -> tuple[torch.Tensor | None, ...]:
    return *_gradients(_opaque, ctx.saved_tensors, gh, gf, ctx.axis, ctx.reverse), None, None


_opaque.register_autograd(_backward, setup_context=_save)
_opaque.register_vmap(lambda info, in_dims, *args: _batched(_opaque, info, in_dims, *args))
