"""Attention by torch's fused kernels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F


def attend(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Any:
    return _attend(query, key, value, mask, causal, window, scale, 0.0)


def _attend(
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    causal: bool,
    window: int | None,
    scale: Any,
    dropout: float,
) -> Any:
    if query.ndim != key.ndim:
        raise ValueError("the shapes of query and key have different numbers of axes")
    grouped = query.ndim > 2 and query.shape[-3] != key.shape[-3]
    square = causal and window is None and mask is None and query.shape[-2] == key.shape[-2]
    if not square:
        mask = _mask(query, key, mask, causal, window)
    return F.scaled_dot_product_attention(
        query, key, value, mask, dropout, is_causal=square, scale=scale, enable_gqa=grouped
    )


def _mask(query: Any, key: Any, mask: Any, causal: bool, window: int | None) -> Any:
    """The given mask and that of the positions: bools, or numbers of the query's dtype."""
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
