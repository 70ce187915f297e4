"""Attention with torch's fused kernels."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ember_ml.backend.torch.custom import fused_once
from ember_ml.backend.torch.nesting import is_tracked


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    return _attend(query, key, value, mask, causal, window, scale, 0.0)


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor,
    causal: bool,
    window: int | None,
    scale: torch.Tensor,
    dropout: float,
) -> torch.Tensor:
    if query.ndim != key.ndim or key.shape[:-1] != value.shape[:-1]:
        raise ValueError("query, key and value must agree in all axes but the last two")
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    square = causal and window is None and mask is None and query.shape[-2] == key.shape[-2]
    if not square:
        mask = _mask(query, key, mask, causal, window)
    options: dict[str, Any] = {"scale": scale}
    if square:  # a literal True, because `square` is a symbol while a compiler traces
        options["is_causal"] = True
    if grouped:
        options["enable_gqa"] = True
    fused = functools.partial(
        F.scaled_dot_product_attention, attn_mask=mask, dropout_p=dropout, **options
    )
    if is_tracked(mask):
        return fused(query, key, value)  # torch then uses its plain implementation

    def stepwise(*arrays: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return fused(*arrays)

    return fused_once(fused, stepwise, (query, key, value))


def _mask(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor, causal: bool, window: int | None
) -> torch.Tensor:
    """Combine the given mask and that of the positions: bools, or numbers of the query's dtype."""
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask.to(query.dtype)
    if not causal and window is None:
        return mask
    queries, keys = query.shape[-2], key.shape[-2]
    positions = torch.arange(keys - queries, keys, device=query.device)
    behind = positions[:, None] - torch.arange(keys, device=query.device)
    if window is None:
        allowed = behind >= 0
    else:
        allowed = (behind < window) & (behind >= 0 if causal else behind > -window)
    if mask is None:
        return allowed
    return mask & allowed if mask.dtype is torch.bool else mask.masked_fill(~allowed, -math.inf)
