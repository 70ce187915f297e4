"""Losses with native kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml.backend.torch.nesting import is_tracked


def _check(op: str, x: torch.Tensor, y: torch.Tensor) -> None:
    if x.shape != y.shape:
        raise ShapeError(
            f"{op}: predictions of the shape {tuple(x.shape)} and targets of {tuple(y.shape)}; "
            "they must be equal"
        )


def mse_loss(x: torch.Tensor, y: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    _check("mse_loss", x, y)
    return F.mse_loss(x, y, reduction=reduction)


def l1_loss(x: torch.Tensor, y: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    _check("l1_loss", x, y)
    return F.l1_loss(x, y, reduction=reduction)


def _weighted(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, pos_weight: Any
) -> torch.Tensor:
    """Compute in plain ops; torch's own has no gradient for the weights."""
    share = 1.0 if pos_weight is None else 1.0 + (pos_weight - 1.0) * y
    loss = (1.0 - y) * x - share * F.logsigmoid(x)
    return loss if weight is None else loss * weight


def _reduced(loss: Any, reduction: str) -> torch.Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss if reduction == "none" else getattr(loss, reduction)()


def binary_cross_entropy_with_logits(
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor | None = None,
    pos_weight: torch.Tensor | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    _check("binary_cross_entropy_with_logits", x, y)
    if is_tracked(weight, pos_weight):
        return _reduced(_weighted(x, y, weight, pos_weight), reduction)
    return F.binary_cross_entropy_with_logits(
        x, y, weight, pos_weight=pos_weight, reduction=reduction
    )
