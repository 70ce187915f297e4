"""Linear attention with decay, and with the delta rule."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import delta_rule
from ember_ml.backend import linear_attention as shared
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.linear_attention import add_own, attend, by_kernel, plain


def gated_linear_attention(query, key, value, decay=None, bonus=None):
    shared.check("gated_linear_attention", query, key, value, decay, bonus)
    if not query.shape[2]:
        return value
    operands = (query, key, value, decay)
    if kernels.serves(*operands) and kernels.gated_linear_attention.takes(query, value):
        strict = bonus is not None
        y = kernels.gated_linear_attention.apply(_plain_attention, *operands, strict=strict)
        return y if bonus is None else add_own(y, query, key, value, bonus)
    return _apply(query, key, value, decay, None, bonus)


def gated_delta_rule(query, key, value, rate, decay=None):
    delta_rule.check(query, key, value, rate, decay)
    if not query.shape[2]:
        return value
    operands = query, key, value, rate, decay
    if kernels.serves(*operands) and kernels.gated_delta_rule.takes(query, value):
        return kernels.gated_delta_rule.apply(_plain_delta_rule, *operands)
    return _apply(query, key, value, decay, rate, None)


def _attend(query, key, value, decay=None, rate=None, bonus=None, state=None):
    results = by_kernel(query, key, value, decay, rate, bonus, state)
    return None if results is None else (*results, torch.empty_like(value[:, :, :0]))


def _apply(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: Any, rate: Any, bonus: Any
) -> torch.Tensor:
    results = by_kernel(query, key, value, decay, rate, bonus, None)
    if results is None:
        results = plain(query, key, value, decay, rate, bonus, None)
    return results[0]


def _plain_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: Any, strict: bool
) -> torch.Tensor:
    return attend(query, key, value, decay, strict, None)[0]


def _plain_delta_rule(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rate: torch.Tensor, decay: Any
) -> torch.Tensor:
    return plain(query, key, value, decay, rate, None, None)[0]
