"""Classification losses."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.nesting import is_tracked

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


def _is_served(logits: torch.Tensor, targets: torch.Tensor, axis: int) -> bool:
    """Return whether the Triton kernel takes logits, and targets of classes, of these shapes."""
    if not kernels.serves(logits) or not logits.numel() or not -logits.ndim <= axis < logits.ndim:
        return False
    rest = [length for at, length in enumerate(logits.shape) if at != axis % logits.ndim]
    return list(targets.shape) == rest and targets.device == logits.device


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
    if not soft and weight is None and _is_served(logits, targets, axis):
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
