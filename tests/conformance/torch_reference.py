"""Functions of torch in float64, as references for rows of the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def _tensor(value: Any) -> Any:
    return (
        torch.from_numpy(np.array(value)) if isinstance(value, (np.ndarray, np.generic)) else value
    )


def by_torch(function: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """Return a function of tensors as one of arrays; `names` maps keywords to torch's names."""

    def reference(*values: Any, **kwargs: Any) -> Any:
        options = {names.get(name, name): value for name, value in kwargs.items()}
        with warnings.catch_warnings(action="ignore"):
            out = function(*map(_tensor, values), **options)
        return tuple(part.numpy() for part in out) if isinstance(out, tuple) else out.numpy()

    return reference


def by_adjoint(function: Callable[..., Any], operands: int = 1) -> Callable[..., Any]:
    """Return the adjoint of a function of tensors, by torch's autograd, as a function of arrays.

    Args:
        function: Function of the leading operands, other arrays and keywords.
        operands: Number of leading operands whose gradients are returned.
    """

    def reference(g: Any, *values: Any, **kwargs: Any) -> Any:
        tensors = [_tensor(value) for value in values]
        leaves = [x.requires_grad_() for x in tensors[:operands]]
        with warnings.catch_warnings(action="ignore"):
            out = function(*leaves, *tensors[operands:], **kwargs)
        grads = [x.numpy() for x in torch.autograd.grad(out, leaves, _tensor(g))]
        return grads[0] if operands == 1 else tuple(grads)

    return reference
