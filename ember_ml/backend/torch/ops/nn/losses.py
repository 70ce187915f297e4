"""Losses with kernels of torch's own."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F

from ember_ml._core.errors import ShapeError


def _check(op: str, x: Any, y: Any) -> None:
    if x.shape != y.shape:
        raise ShapeError(
            f"{op}: predictions of the shape {tuple(x.shape)} and targets of {tuple(y.shape)}; "
            "they must be equal"
        )


def mse_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    _check("mse_loss", x, y)
    return F.mse_loss(x, y, reduction=reduction)


def l1_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    _check("l1_loss", x, y)
    return F.l1_loss(x, y, reduction=reduction)


def binary_cross_entropy_with_logits(
    x: Any, y: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    _check("binary_cross_entropy_with_logits", x, y)
    return F.binary_cross_entropy_with_logits(
        x, y, weight, pos_weight=pos_weight, reduction=reduction
    )
