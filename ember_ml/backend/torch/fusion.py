"""Fused CPU kernels in plain torch, with hand-written backward passes.

They serve the common case: one gradient on a CPU. Compilers, transforms and higher derivatives
use the plain expression, which torch differentiates itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from ember_ml.backend.torch.direct import unchecked_apply

Saved = TypeVar("Saved")
Result = TypeVar("Result", bound="torch.Tensor | tuple[torch.Tensor, ...]")
Plain = Callable[..., Result]
Run = Callable[..., tuple[Result, Saved]]
Pullback = Callable[..., Sequence[torch.Tensor | None]]

_DTYPES = (torch.float32, torch.float64)
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


class _Fused(torch.autograd.Function):  # type: ignore[misc]
    """`run(*operands)` with the gradients `pullback(operands, saved, g)`."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        run: Run[Result, Saved],
        pullback: Pullback,
        plain: Plain[Result],
        *operands: torch.Tensor | None,
    ) -> Result:
        out, saved = run(*operands)
        ctx.pullback, ctx.plain = pullback, plain
        is_saved = saved is out
        if (
            isinstance(out, torch.Tensor) and out._is_view()
        ):  # torch refuses to change a view in place
            out = out.new_empty(0).set_(out)
        if is_saved:  # an attribute would be a reference cycle
            ctx.save_for_backward(*operands, out)
        else:
            ctx.saved = saved
            ctx.save_for_backward(*operands)
        return out

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *g: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        operands, saved = _restored(ctx)
        batched = any(torch._C._functorch.is_legacy_batchedtensor(each) for each in g)
        if torch.is_grad_enabled() or batched or not is_eager():
            return None, None, None, *_plain_gradients(ctx, operands, g)
        stored = [each.resolve_neg() for each in g]  # kernels read the memory
        return None, None, None, *ctx.pullback(operands, saved, *stored)


def _restored(
    ctx: torch.autograd.function.FunctionCtx,
) -> tuple[Sequence[torch.Tensor | None], Any]:
    """Return the operands, and the values that `run` saved."""
    tensors = ctx.saved_tensors  # read once: torch's checkpoints allow no more
    count = len(ctx.needs_input_grad) - 3
    return tensors[:count], tensors[count] if len(tensors) > count else ctx.saved


class _Linear(torch.autograd.Function):  # type: ignore[misc]
    """`run(*operands)` with the gradients `transpose(*g)`. Stores no operands."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        run: Plain[Result],
        transpose: Pullback,
        *operands: torch.Tensor,
    ) -> Result:
        ctx.transpose = transpose
        return run(*operands)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *g: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return None, None, *ctx.transpose(*g)


_apply_fused = unchecked_apply(_Fused)
_apply_linear = unchecked_apply(_Linear)


def _plain_gradients(
    ctx: torch.autograd.function.FunctionCtx,
    operands: Sequence[torch.Tensor | None],
    g: Sequence[torch.Tensor],
) -> list[torch.Tensor | None]:
    """Return the gradients of the plain expression, which can be differentiated again."""
    needs_grad = ctx.needs_input_grad[3:]
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        out = ctx.plain(*operands)
        outs = (out,) if isinstance(out, torch.Tensor) else out
        sources = [x for x, needed in zip(operands, needs_grad, strict=True) if needed]
        grads = iter(torch.autograd.grad(outs, sources, g, create_graph=again, allow_unused=True))
    return [next(grads) if needed else None for needed in needs_grad]


def is_eager() -> bool:
    """Return whether ops run at once, outside of compilers, transforms and forward gradients."""
    return (
        not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and torch.autograd.forward_ad._current_level < 0
    )


def fusible(*operands: torch.Tensor | None) -> bool:
    """Return whether a kernel that writes to preallocated memory may take these operands."""
    return is_eager() and all(
        x is None or (x.is_cpu and x.dtype in _DTYPES and not _is_wrapped(x)) for x in operands
    )


def fused(
    run: Run[Result, Saved],
    pullback: Pullback,
    plain: Plain[Result],
    *operands: torch.Tensor | None,
) -> Result:
    """Return the result of `run`, differentiated by `pullback`.

    Args:
        run: Kernel that returns the result, one tensor or a tuple, and the values that `pullback`
            needs, which may be the result itself, one tensor.
        pullback: Function of the operands, these values and the result's gradients; returns the
            operands' gradients.
        plain: The same computation in ops that torch differentiates.
        operands: Arguments of `run` and `plain`.
    """
    if torch.is_grad_enabled():
        for x in operands:
            if x is not None and x.requires_grad:
                return _apply_fused(run, pullback, plain, *operands)
    return run(*operands)[0]


def linear(run: Plain[Result], transpose: Pullback, *operands: torch.Tensor) -> Result:
    """Return the result of a linear function, differentiated by its transpose.

    Args:
        run: Kernel that returns the result, one tensor or a tuple.
        transpose: Function of the result's gradients that returns the operands' gradients. It must
            take any tensors, and be differentiable itself.
        operands: Arguments of `run`.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in operands):
        return _apply_linear(run, transpose, *operands)
    return run(*operands)
