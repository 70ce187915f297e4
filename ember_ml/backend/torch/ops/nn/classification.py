"""Classification losses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._native.calls import Kernel
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.fusion import fused
from ember_ml.backend.torch.native import is_dense
from ember_ml.backend.torch.nesting import is_tracked
from ember_ml.backend.torch.ops._kernel_calls import call, gradients, is_served, threads

_CROSS_ENTROPY = Kernel("cross_entropy", "pppiiiri")
_CROSS_ENTROPY_ADJOINT = Kernel("cross_entropy_adjoint", "ppppiiiri")
_LEAST = 1 << 16
"""Number of logits from which the C kernel is faster than torch's own functions."""
_HALVES = (torch.float16, torch.bfloat16)


def _wide(x: torch.Tensor) -> torch.Tensor:
    """Convert half precision to float32; the sum of a batch's losses overflows."""
    return x.float() if x is not None and x.dtype in _HALVES else x


def _classes_second(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Move the class axis to where torch expects it."""
    return x.movedim(axis, min(x.ndim, 2) - 1)


def _weighted(
    scores: Any,
    targets: torch.Tensor,
    weight: torch.Tensor,
    ignore_index: int,
    smoothing: float,
    reduction: str,
) -> torch.Tensor:
    """Compute in plain ops; torch's own losses have no gradient for the weights."""
    axis = min(scores.ndim, 2) - 1
    counts = targets != ignore_index
    safe = torch.where(counts, targets, 0)
    share = torch.where(counts, weight[safe], 0)
    loss = -scores.gather(axis, safe.unsqueeze(axis)).squeeze(axis) * share
    if smoothing > 0:
        along = weight.view(-1, *(1,) * (scores.ndim - 1 - axis))
        spread = torch.where(counts, -(scores * along).sum(axis), 0)
        loss = loss * (1.0 - smoothing) + spread * (smoothing / weight.numel())
    if reduction == "mean":
        return loss.sum() / share.sum()
    return loss.sum() if reduction == "sum" else loss


def nll_loss(
    x: torch.Tensor,
    targets: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    axis: int = -1,
) -> torch.Tensor:
    scores = _classes_second(_wide(x), axis)
    if weight is not None and is_tracked(weight):
        given = targets.long(), _wide(weight), ignore_index, 0.0, reduction
        return _weighted(scores, *given).to(x.dtype)
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
    return F.nll_loss(scores, targets.long(), _wide(weight), **options).to(x.dtype)


def _fits(logits: torch.Tensor, targets: torch.Tensor, axis: int) -> bool:
    """Return whether the targets have the shape and the device of the logits' rows."""
    if not logits.numel() or not -logits.ndim <= axis < logits.ndim:
        return False
    rest = [length for at, length in enumerate(logits.shape) if at != axis % logits.ndim]
    return list(targets.shape) == rest and targets.device == logits.device


def _count(targets: torch.Tensor, ignored: int, classes: int) -> int | None:
    """Return the number of targets that count; None if one of them is not a class."""
    low, high = (int(bound) for bound in targets.aminmax())
    if low >= 0 and high < classes and not low <= ignored <= high:
        return targets.numel()
    counted = targets[targets != ignored]
    valid = not counted.numel() or bool((counted >= 0).all() and (counted < classes).all())
    return counted.numel() if valid else None


def _by_kernel(
    scores: torch.Tensor,
    targets: torch.Tensor,
    ignored: int,
    smoothing: float,
    reduction: str,
    axis: int,
) -> torch.Tensor | None:
    """Return the loss by a C kernel that stores no probabilities; None if it does not take them."""
    if not is_served(scores, least=_LEAST) or not _fits(scores, targets, axis):
        return None
    targets = targets.long().contiguous()
    if not is_dense(targets, torch.int64) or reduction not in ("mean", "sum", "none"):
        return None
    if type(ignored) is not int or not -(2**63) <= ignored < 2**63:
        return None
    count = _count(targets, ignored, scores.shape[axis])
    if count is None or (count == 0 and reduction == "mean"):
        return None
    share = 1.0 / count if reduction == "mean" else 1.0
    numbers = ignored, float(smoothing)

    def run(x: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, None]:
        x = x.contiguous()
        losses = x.new_empty(targets.shape)
        sizes = targets.numel(), x.shape[-1]
        call(_CROSS_ENTROPY, (x, targets, losses), *sizes, *numbers, threads(x.numel()))
        return losses if reduction == "none" else losses.sum() * share, None

    def plain(x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        options: dict[str, Any] = {"ignore_index": ignored, "label_smoothing": smoothing}
        out = F.cross_entropy(x.flatten(0, -2), targets.flatten(), reduction=reduction, **options)
        return out.reshape(targets.shape) if reduction == "none" else out

    def pullback(operands: Sequence[torch.Tensor], _: None, g: torch.Tensor) -> Any:
        x, targets = operands
        if not is_served(x, g, least=1):  # a mode since the forward pass, or switched off
            return gradients(partial(plain, targets=targets), (x,), g)[0], None
        x, g = x.contiguous(), (g if reduction == "none" else g * share).expand(targets.shape)
        out, sizes = torch.empty_like(x), (targets.numel(), x.shape[-1])
        tensors = g.contiguous(), x, targets, out
        call(_CROSS_ENTROPY_ADJOINT, tensors, *sizes, *numbers, threads(x.numel()))
        return out, None

    return fused(run, pullback, plain, scores.movedim(axis, -1), targets)


def cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    axis: int = -1,
) -> torch.Tensor:
    if not 0 <= label_smoothing <= 1 or targets.is_complex():
        raise ValueError("label_smoothing must be in [0, 1], and targets real")
    soft = targets.is_floating_point() or targets.dtype is torch.bool
    if not soft and weight is None and kernels.serves(logits) and _fits(logits, targets, axis):
        rows = kernels.cross_entropy.rows(
            logits.movedim(axis, -1).reshape(-1, logits.shape[axis]),
            *(targets.long().reshape(-1), ignore_index, label_smoothing),
        )
        if reduction == "none":
            return rows.reshape(targets.shape).to(logits.dtype)
        total = rows.sum()
        if reduction == "mean":
            total = total / (targets != ignore_index).sum()
        return total.to(logits.dtype)
    if not soft and weight is None:
        options = ignore_index, label_smoothing, reduction, axis
        loss = _by_kernel(_wide(logits), targets, *options)
        if loss is not None:
            return loss.to(logits.dtype)
    scores = _classes_second(_wide(logits), axis)
    targets = _classes_second(targets.to(scores.dtype), axis) if soft else targets.long()
    if not soft and weight is not None and is_tracked(weight):
        scores = torch.log_softmax(scores, min(scores.ndim, 2) - 1)
        given = targets, _wide(weight), ignore_index, label_smoothing, reduction
        return _weighted(scores, *given).to(logits.dtype)
    return F.cross_entropy(
        scores,
        targets,
        _wide(weight),
        ignore_index=-100 if soft else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    ).to(logits.dtype)
