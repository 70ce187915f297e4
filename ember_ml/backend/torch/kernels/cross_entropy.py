"""Cross-entropy of classes as Triton kernels; the logits are read once in each pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ember_ml.backend.torch.kernels.launching import (
    cdiv,
    fused,
    new_sums,
    next_power,
    on_device,
)

MAX_BLOCK = 2048
"""Classes that a program instance reads at a time."""


def reference(x: Tensor, targets: Tensor, ignored: int, smoothing: float) -> Tensor:
    """Return the loss of each row in float32, in plain torch.

    Args:
        x: Logits, (rows, classes).
        targets: Classes, (rows,).
        ignored: Class of rows without a loss.
        smoothing: Share of the probability that is spread over all classes.
    """
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    options: dict[str, Any] = {"ignore_index": ignored, "label_smoothing": smoothing}
    return F.cross_entropy(wide, targets, reduction="none", **options)


def rows(x: Tensor, targets: Tensor, ignored: int, smoothing: float) -> Tensor:
    """Return the loss of each row like `reference`; NaN for a target outside the classes.

    Args:
        x: Logits, (rows, classes), not empty.
        targets: Classes, (rows,).
        ignored: Class of rows without a loss.
        smoothing: Share of the probability that is spread over all classes.
    """
    options: dict[str, Any] = {"ignored": ignored, "smoothing": smoothing}
    return fused(
        partial(forward, **options),
        partial(forward, **options),
        partial(pull, **options),
        partial(reference, **options),
        *(x, targets),
    )


@torch.library.custom_op("ember_ml::triton_cross_entropy", mutates_args=())
def forward(x: Tensor, targets: Tensor, ignored: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the loss of each row, and the logarithm of its sum of exponentials."""
    from ember_ml.backend.torch.kernels.programs import cross_entropy as programs

    loss, total = new_sums(x, len(x)), new_sums(x, len(x))
    with on_device(x):
        programs.losses[(len(x),)](
            *(x, targets.contiguous(), loss, total, x.shape[1], ignored, smoothing, *x.stride()),
            SMOOTHED=smoothing > 0,
            BLOCK=min(MAX_BLOCK, next_power(x.shape[1])),
        )
    return loss, total


@torch.library.custom_op("ember_ml::triton_cross_entropy_backward", mutates_args=())
def backward(
    x: Tensor, targets: Tensor, total: Tensor, g: Tensor, ignored: int, smoothing: float
) -> Tensor:
    """Return the gradient of the logits.

    Args:
        x: Logits, (rows, classes).
        targets: Classes, (rows,).
        total: Second result of `forward`.
        g: Gradients of the losses, (rows,).
        ignored: Class of rows without a loss.
        smoothing: Share of the probability that is spread over all classes.
    """
    from ember_ml.backend.torch.kernels.programs import cross_entropy as programs

    grad = x.new_empty(x.shape)
    block = min(MAX_BLOCK, next_power(x.shape[1]))
    with on_device(x):
        programs.gradients[(len(x), cdiv(x.shape[1], block))](
            *(x, targets.contiguous(), total, g.contiguous(), grad, x.shape[1], ignored),
            *(smoothing, *x.stride()),
            BLOCK=block,
        )
    return grad


def pull(
    operands: Any, total: Tensor, g: Tensor, ignored: int, smoothing: float
) -> tuple[Tensor, None]:
    """Return the gradient of the logits, and None for the targets."""
    return backward(*operands, total, g, ignored, smoothing), None


@forward.register_fake
def _(x: Tensor, targets: Tensor, ignored: int, smoothing: float) -> tuple[Tensor, Tensor]:
    return new_sums(x, len(x)), new_sums(x, len(x))


@backward.register_fake
def _(x: Tensor, targets: Any, total: Any, g: Any, ignored: int, smoothing: float) -> Tensor:
    return x.new_empty(x.shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, targets, ctx.ignored, ctx.smoothing = inputs
    ctx.save_for_backward(x, targets, output[1])


def _pull(ctx: Any, g: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
    x, targets, total = ctx.saved_tensors
    return backward(x, targets, total, g, ctx.ignored, ctx.smoothing), None, None, None


forward.register_autograd(_pull, setup_context=_save)
