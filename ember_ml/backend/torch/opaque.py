"""Scans that a compiler sees as one op, with their gradient as another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def opaque_scan(
    name: str,
    schema: str,
    run: Callable[..., Any],
    pull: Callable[..., Any],
    fake: Callable[..., Any],
) -> Any:
    """Return a custom op of operands that returns the outputs, the last state and saved values.

    Args:
        name: Name of the op; that of its gradient ends in `_adjoint`.
        schema: Operands in the schema language of torch, some of them optional.
        run: Function of the operands that returns the outputs and the last state as a tuple, and
            the saved values or None, as for `fusion.fused`.
        pull: Function of the operands, the saved values (empty for None) and the gradients of the
            outputs and of the last state; returns the operands' gradients, None for missing ones.
        fake: Function of the operands that returns the results without values.
    """

    def forward(*operands: Any) -> tuple[torch.Tensor, ...]:
        (y, last), saved = run(*operands)
        saved = y.new_empty(0) if saved is None else saved.contiguous()
        return y.contiguous(), last.contiguous(), saved

    def gradients(*args: Any) -> list[torch.Tensor]:
        *operands, saved, g, g_last = args
        grads = pull(operands, saved, g, g_last)
        return [g.new_empty(0) if x is None else x.contiguous() for x in grads]

    op = torch.library.custom_op(
        f"ember_ml::{name}",
        forward,
        mutates_args=(),
        schema=f"({schema}) -> (Tensor, Tensor, Tensor)",
    )
    adjoint = torch.library.custom_op(
        f"ember_ml::{name}_adjoint",
        gradients,
        mutates_args=(),
        schema=f"({schema}, Tensor saved, Tensor g, Tensor g_last) -> Tensor[]",
    )

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs, output[2])

    def backward(ctx: Any, g: Any, g_last: Any, _: Any) -> tuple[Any, ...]:
        *operands, saved = ctx.saved_tensors
        grads = adjoint(*operands, saved, g, g_last)
        pairs = zip(operands, grads, strict=True)
        return tuple(None if x is None else grad for x, grad in pairs)

    op.register_fake(fake)
    adjoint.register_fake(
        lambda *args: [args[0].new_empty(0 if x is None else x.shape) for x in args[:-3]]
    )
    op.register_autograd(backward, setup_context=save)
    return op
