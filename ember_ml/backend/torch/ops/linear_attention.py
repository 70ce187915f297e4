"""Linear attention with decay, and the recurrence of the delta rule over chunks."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import linear_attention as shared
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops.recurrence import linear_recurrence


def gated_linear_attention(query, key, value, decay=None, bonus=None):
    shared.check("gated_linear_attention", query, key, value, decay, bonus)
    if not query.shape[2]:
        return value
    operands, strict = (query, key, value, decay), bonus is not None
    if kernels.serves(*operands) and kernels.gated_linear_attention.takes(query, value):
        y = kernels.gated_linear_attention.apply(_attend, *operands, strict=strict)
    else:
        y = _attend(*operands, strict=strict)
    if bonus is None:
        return y
    return y + (query * key * bonus.unsqueeze(1)).sum(-1, keepdim=True) * value


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: Any, strict: bool
) -> torch.Tensor:
    """Compute in plain ops."""
    decay = None if decay is None else torch.clamp(decay, min=shared.MIN_LOG_DECAY)
    return shared.attend(_ARRAYS, query, key, value, decay, strict, None)[0]


def _pad(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, count))


_ARRAYS = shared.Arrays(torch, _pad, linear_recurrence)
