"""Use of the C kernels by the ops of this backend on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ember_ml import _native
from ember_ml._native.calls import Kernel, threads_for
from ember_ml.backend.torch.fusion import fused, is_eager
from ember_ml.backend.torch.native import SUFFIXES, is_dense

SMALL = 1 << 13
"""Number of elements below which torch's own functions are as fast as most kernels."""


def is_served(x: torch.Tensor, *others: torch.Tensor | None, least: int | None = None) -> bool:
    """Return whether the kernels take these tensors: of one dtype, in memory, not too small.

    A dispatch mode, a tracer or a transform must see torch's own ops.

    Args:
        x: First operand.
        others: Other operands; None for a missing one.
        least: Number of elements of x from which the kernel is faster. Default: `SMALL`.
    """
    if _native.library is None or not is_eager():  # first: a tracer must not see sizes
        return False
    if x.dtype not in SUFFIXES or x.numel() < (SMALL if least is None else least):
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state():
        return False
    return all(y is None or is_dense(y, x.dtype) for y in (x, *others))


def is_autocast(x: torch.Tensor) -> bool:
    """Return whether `torch.autocast` chooses the precision of products of tensors like x."""
    return x.is_cpu and torch.is_autocast_enabled("cpu")


def call(kernel: Kernel, tensors: Sequence[Any], *numbers: float) -> None:
    """Call a kernel with the addresses of contiguous tensors, then the numbers.

    Args:
        kernel: Function of the library.
        tensors: Its arrays; the first has the dtype of the function; None for a missing one.
        numbers: Its other arguments.
    """
    addresses = [None if x is None else x.data_ptr() for x in tensors]
    kernel(SUFFIXES[tensors[0].dtype], *addresses, *numbers)


def dense(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tensor without gaps in memory, copied if it has any, and an empty one like it."""
    out = torch.empty_like(x)
    if out.stride() == x.stride():
        return x, out
    x = x.contiguous()
    return x, torch.empty_like(x)


def threads(work: int) -> int:
    """Return the number of threads for a number of operations."""
    return threads_for(work, torch.get_num_threads())


def with_adjoint(
    run: Callable[..., Any],
    pull: Callable[..., Sequence[torch.Tensor | None]],
    plain: Callable[..., Any],
    *operands: torch.Tensor | None,
) -> Any:
    """Return `run(*operands)`, differentiated by `pull(g, *operands)`.

    Args:
        run: Function by kernels.
        pull: Its adjoint by kernels.
        plain: The same function in ops that torch differentiates.
        operands: Tensors that the kernels take.
    """

    def pullback(saved: Sequence[torch.Tensor | None], _: None, g: torch.Tensor) -> Any:
        if not is_served(g, *saved, least=1):  # a mode since the forward pass, or switched off
            return gradients(plain, saved, g)
        return pull(g, *saved)

    return fused(lambda *tensors: (run(*tensors), None), pullback, plain, *operands)


def gradients(
    plain: Callable[..., Any], operands: Sequence[torch.Tensor | None], g: torch.Tensor
) -> list[torch.Tensor | None]:
    """Return the gradients of a plain expression."""
    leaves = [None if x is None else x.detach().requires_grad_() for x in operands]
    with torch.enable_grad():
        out = plain(*leaves)
    sources = [x for x in leaves if x is not None]
    grads = iter(torch.autograd.grad(out, sources, g, allow_unused=True))
    return [None if x is None else next(grads) for x in leaves]
