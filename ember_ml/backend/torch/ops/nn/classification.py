"""Losses against classes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

_HALVES = (torch.float16, torch.bfloat16)


def _wide(x: Any) -> Any:
    """Half precision as float32: the sum of a batch's losses overflows it."""
    return x.float() if x is not None and x.dtype in _HALVES else x


def _classes_second(x: Any, axis: int) -> Any:
    """X with the axis of classes where torch wants it."""
    return x.movedim(axis, min(x.ndim, 2) - 1)


def nll_loss(
    x: Any,
    targets: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    axis: int = -1,
) -> Any:
    scores = _classes_second(_wide(x), axis)
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
    return F.nll_loss(scores, targets.long(), _wide(weight), **options).to(x.dtype)


def cross_entropy(
    logits: Any,
    targets: Any,
    weight: Any = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    axis: int = -1,
) -> Any:
    soft = targets.is_floating_point()
    scores = _classes_second(_wide(logits), axis)
    targets = _classes_second(targets.to(scores.dtype), axis) if soft else targets.long()
    return F.cross_entropy(
        scores,
        targets,
        _wide(weight),
        ignore_index=-100 if soft else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    ).to(logits.dtype)
