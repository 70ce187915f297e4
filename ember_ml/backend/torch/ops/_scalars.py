"""Binary functions of a tensor and a Python scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def right(function: Callable[[Any, Any], Any]) -> Callable[[Any, float], Any]:
    """Return the function for a scalar on the right."""

    def of_scalar(tensor: torch.Tensor, number: float) -> torch.Tensor:
        return function(
            tensor, torch.scalar_tensor(number, dtype=tensor.dtype, device=tensor.device)
        )

    return of_scalar


def left(function: Callable[[Any, Any], Any]) -> Callable[[float, Any], Any]:
    """Return the function for a scalar on the left."""

    def of_scalar(number: float, tensor: torch.Tensor) -> torch.Tensor:
        return function(
            torch.scalar_tensor(number, dtype=tensor.dtype, device=tensor.device), tensor
        )

    return of_scalar
