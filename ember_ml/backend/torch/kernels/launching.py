"""Helpers of launches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from ember_ml.backend.torch.fusion import fused as fuse
from ember_ml.backend.torch.nesting import needs_plain_ops


def on_device(x: torch.Tensor) -> Any:
    """Return a context in which programs run on the device of a tensor."""
    return torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()


def cdiv(length: int, size: int) -> int:
    """Return the number of blocks of a size that cover a length."""
    return -(-length // size)


def next_power(length: int) -> int:
    """Return the smallest power of two that is at least a length."""
    return 1 << max(0, length - 1).bit_length()


def new_sums(like: torch.Tensor, *shape: int) -> torch.Tensor:
    """Return an uninitialized float32 array for sums.

    Args:
        like: Array on the same device.
        shape: Shape of the result.
    """
    return like.new_empty(shape, dtype=torch.float32)


def fused(
    op: Callable[..., Any],
    run: Callable[..., Any],
    pull: Callable[..., Any],
    plain: Callable[..., Any],
    *operands: torch.Tensor | None,
) -> torch.Tensor:
    """Return the result of a kernel, or of plain ops where torch must see them.

    Transforms, exports and gradients inside a compiled function use plain ops, and so do gradients
    of gradients.

    Args:
        op: Kernel as an op of `torch.library` with a gradient; its first result is returned.
        run: Kernel that returns the result and the values that `pull` needs.
        pull: Function of the operands, these values and the result's gradient; returns the
            operands' gradients.
        plain: The same computation in ops that torch differentiates.
        operands: Arguments of `op`, `run` and `plain`.
    """
    if torch.compiler.is_compiling():
        if needs_plain_ops():
            return plain(*operands)
        out = op(*operands)
        return out[0] if isinstance(out, tuple) else out
    if torch._C._are_functorch_transforms_active():
        return plain(*operands)
    return fuse(run, pull, plain, *operands)
