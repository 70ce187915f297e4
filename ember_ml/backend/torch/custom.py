"""Functions with custom gradients on torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import torch

from ember_ml.backend.torch.direct import direct_apply
from ember_ml.backend.torch.nesting import levels, nesting, tracing

R = TypeVar("R", bound="torch.Tensor | tuple[torch.Tensor, ...]")
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


_apply = direct_apply(_CustomVJP)


def custom_vjp(
    forward: Forward, pullback: Pullback, primals: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return `forward(*primals)` with the gradients `pullback(primals, cotangents, rerun)`.

    `rerun` says that the gradients are differentiated again, so that the pullback must not reuse
    values of the forward pass.
    """
    return _apply(forward, pullback, *primals)


def fused_once(
    fused: Callable[..., R],
    plain: Callable[..., R],
    arrays: Sequence[torch.Tensor | None],
    order: int = 0,
) -> R:
    """Return the result of a fused kernel whose higher derivatives are those of plain ops.

    Args:
        fused: Kernel that torch differentiates once.
        plain: The same function in ops that torch differentiates any number of times.
        arrays: Arguments of both.
        order: Number of nested gradients of `torch.func` that the kernel supports; -1 if it does
            not run in `torch.func.vmap`.
    """
    if torch.compiler.is_compiling():
        return (plain if tracing.gradients > 1 else fused)(*arrays)
    if nesting.once:
        return fused(*arrays)
    if torch._C._are_functorch_transforms_active():
        tracked = levels(*arrays)
        many = 0 in tracked or len(tracked) > order
        return (plain if many else fused)(*arrays)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arrays):
        return _fused_first(fused, plain, arrays)
    return fused(*arrays)


def _fused_first(
    fused: Callable[..., R], plain: Callable[..., R], arrays: Sequence[torch.Tensor | None]
) -> R:
    """Use the fused kernel in both passes, or plain ops if the gradient is differentiated again.

    In a checkpoint, the backward pass runs the kernel again: differentiating a graph of the forward
    pass would be a gradient of its own, for which the checkpoint computes everything once more.
    """
    graph: tuple[list[torch.Tensor], Sequence[torch.Tensor]] | None = None
    given = [at for at, x in enumerate(arrays) if x is not None]
    single = True

    def run(kernel: Callable[..., R], present: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        nonlocal single
        places = dict(zip(given, present, strict=True))
        out = kernel(*[places.get(at) for at in range(len(arrays))])
        single = isinstance(out, torch.Tensor)
        return (out,) if single else cast("tuple[torch.Tensor, ...]", out)

    def record(
        present: Sequence[torch.Tensor],
    ) -> tuple[list[torch.Tensor], Sequence[torch.Tensor]]:
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_(_has_gradient(x)) for x in present]
            return leaves, run(fused, leaves)

    def forward(*present: torch.Tensor) -> list[torch.Tensor]:
        nonlocal graph
        if nesting.checkpoints:
            return list(run(fused, present))
        graph = record(present)
        return [out.detach() for out in graph[1]]

    def pull(
        present: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor], again: bool
    ) -> Sequence[torch.Tensor]:
        if again:
            return torch.func.vjp(lambda *some: run(plain, some), *present)[1](tuple(cotangents))
        leaves, outputs = record(present) if graph is None else graph
        sources = [x for x in leaves if x.requires_grad]
        grads = torch.autograd.grad(
            outputs, sources, cotangents, retain_graph=True, allow_unused=True
        )
        by_id = {id(x): g for x, g in zip(sources, grads, strict=True)}
        grads = [by_id.get(id(x)) for x in leaves]
        return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True)]

    outs = custom_vjp(forward, pull, [x for x in arrays if x is not None])
    return cast(R, outs[0] if single else outs)


def _has_gradient(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()
