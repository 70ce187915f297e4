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
