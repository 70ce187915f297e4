"""Matrices as products of simpler ones."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.torch.ops.linearalg.precision import square, widened

eig = widened(square(torch.linalg.eig))
eigh = widened(square(torch.linalg.eigh))
eigvals = widened(square(torch.linalg.eigvals))
eigvalsh = widened(square(torch.linalg.eigvalsh))
lu = widened(torch.linalg.lu)
svdvals = widened(torch.linalg.svdvals)


@widened
@square
def cholesky(x: Any, upper: bool = False) -> Any:
    """The triangle L of x = L L^H."""
    return torch.linalg.cholesky(x, upper=upper)


@widened
def qr(x: Any, mode: str = "reduced") -> Any:
    """The factors of x = Q R."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode must be "reduced" or "complete", not {mode!r}')
    return torch.linalg.qr(x, mode)


@widened
def svd(x: Any, full_matrices: bool = True) -> Any:
    """The factors of x = U diag(S) Vh."""
    return torch.linalg.svd(x, full_matrices)
