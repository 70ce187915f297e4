"""Functions with gradients of their own, on torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Forward = Callable[..., Sequence[Any]]
Pull = Callable[[Sequence[Any], Sequence[Any], bool], Sequence[Any]]


class _Custom(torch.autograd.Function):  # type: ignore[misc]
    """A function whose backward pass is a given one."""

    generate_vmap_rule = True

    @staticmethod
    def forward(forward: Forward, pull: Pull, *primals: Any) -> tuple[Any, ...]:
        return tuple(forward(*primals))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.pull, *primals = inputs
        ctx.save_for_backward(*primals)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
        again = torch.is_grad_enabled()  # what the first run left has no graph
        return None, None, *ctx.pull(ctx.saved_tensors, cotangents, again)


def custom(forward: Forward, pull: Pull, primals: Sequence[Any]) -> Sequence[Any]:
    """forward(*primals), with the gradients pull(primals, cotangents, again).

    `again` says that the gradients will be differentiated themselves.
    """
    return _Custom.apply(forward, pull, *primals)
