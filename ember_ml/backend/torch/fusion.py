"""Kernels in plain torch that walk through memory block by block, with adjoints of their own.

They serve the common case, one gradient on a CPU. Compilers, transforms and gradients of gradients
get the plain expression, which torch differentiates as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Plain = Callable[..., Any]
Run = Callable[..., tuple[Any, Any]]
Pull = Callable[[Sequence[Any], Any, Any], Sequence[Any]]

_DTYPES = (torch.float32, torch.float64)


class _Fused(torch.autograd.Function):  # type: ignore[misc]
    """run(*operands) with the gradients pull(operands, kept, g)."""

    @staticmethod
    def forward(ctx: Any, run: Run, pull: Pull, plain: Plain, *operands: Any) -> Any:
        out, ctx.kept = run(*operands)
        ctx.pull, ctx.plain = pull, plain
        ctx.save_for_backward(*operands)
        return out

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        operands = ctx.saved_tensors
        if torch.is_grad_enabled() or torch._C._functorch.is_legacy_batchedtensor(g):
            return None, None, None, *_derived(ctx, operands, g)
        return None, None, None, *ctx.pull(operands, ctx.kept, g)


def _derived(ctx: Any, operands: Sequence[Any], g: Any) -> list[Any]:
    """The gradients of the plain expression, which can be differentiated again."""
    wanted = ctx.needs_input_grad[3:]
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        out = ctx.plain(*operands)
        sources = [x for x, needed in zip(operands, wanted, strict=True) if needed]
        found = iter(torch.autograd.grad(out, sources, g, create_graph=again, allow_unused=True))
    return [next(found) if needed else None for needed in wanted]


def fusible(*operands: Any) -> bool:
    """Whether a kernel that writes into memory it has allocated may take these operands."""
    return (
        not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and all(x is None or (x.device.type == "cpu" and x.dtype in _DTYPES) for x in operands)
    )


def fused(run: Run, pull: Pull, plain: Plain, *operands: Any) -> Any:
    """The result of `run`, which also gives what `pull` needs of it."""
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in operands):
        return _Fused.apply(run, pull, plain, *operands)
    return run(*operands)[0]
