"""Adapters for LAPACK, which needs matrices of full precision."""

from __future__ import annotations

import torch

from ember_ml.backend import matrices
from ember_ml.backend.matrices import square as square

_HALVES = (torch.float16, torch.bfloat16)


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALVES else value


def _narrow(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return value.to(dtype) if value.dtype is torch.float32 else value


widened = matrices.widened(_HALVES, _wide, _narrow)
