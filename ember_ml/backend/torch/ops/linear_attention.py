"""Linear attention with decay, and with the delta rule."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import delta_rule
from ember_ml.backend import linear_attention as shared
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops.linearalg.solving import solve_triangular
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


def gated_delta_rule(query, key, value, rate, decay=None):
    delta_rule.check(query, key, value, rate, decay)
    if not query.shape[2]:
        return value
    operands = query, key, value, rate, decay
    if kernels.serves(*operands) and kernels.gated_delta_rule.takes(query, value):
        return kernels.gated_delta_rule.apply(_correct, *operands)
    return _correct(*operands)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: Any, strict: bool
) -> torch.Tensor:
    """Compute in plain ops."""
    return shared.attend(_ARRAYS, query, key, value, _clamped(decay), strict, None)[0]


def _correct(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rate: torch.Tensor, decay: Any
) -> torch.Tensor:
    """Compute in plain ops."""
    return delta_rule.apply(_ARRAYS, query, key, value, rate, _clamped(decay), None)[0]


def _clamped(decay: Any) -> Any:
    return None if decay is None else torch.clamp(decay, min=shared.MIN_LOG_DECAY)


def _pad(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, count))


def _solve(system: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return solve_triangular(system, right, unit_diagonal=True)


_ARRAYS = shared.Arrays(torch, _pad, linear_recurrence, _solve)
