"""What LAPACK takes: matrices, of full precision."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend import matrices
from ember_ml.backend.matrices import square as square

_HALVES = (torch.float16, torch.bfloat16)


def _wide(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALVES else value


def _narrow(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if value.dtype is torch.float32 else value


widened = matrices.widened(_HALVES, _wide, _narrow)
