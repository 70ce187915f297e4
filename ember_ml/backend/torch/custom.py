"""Functions with custom gradients on torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Forward = Callable[..., Sequence[torch.Tensor]]
Pullback = Callable[
    [Sequence[torch.Tensor], Sequence[torch.Tensor], bool], Sequence[torch.Tensor | None]
]


class _CustomVJP(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function with the given forward and backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        forward: Forward, pullback: Pullback, *primals: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return tuple(forward(*primals))

    @staticmethod
    def setup_context(
        ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: object
    ) -> None:
        _, ctx.pullback, *primals = inputs
        ctx.save_for_backward(*primals)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *cotangents: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        rerun = torch.is_grad_enabled()  # the values of the forward pass have no graph
        return None, None, *ctx.pullback(ctx.saved_tensors, cotangents, rerun)


def custom_vjp(
    forward: Forward, pullback: Pullback, primals: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return `forward(*primals)` with the gradients `pullback(primals, cotangents, rerun)`.

    `rerun` says that the gradients are differentiated again, so that the pullback must not reuse
    values of the forward pass.
    """
    return _CustomVJP.apply(forward, pullback, *primals)
