"""Matrix decompositions."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml._core.errors import ArgumentError
from ember_ml.backend.torch.nesting import is_tracked
from ember_ml.backend.torch.ops.linearalg.precision import square, widened

eig = widened(square(torch.linalg.eig))
eigh = widened(square(torch.linalg.eigh))
eigvals = widened(square(torch.linalg.eigvals))
eigvalsh = widened(square(torch.linalg.eigvalsh))
lu = widened(torch.linalg.lu)
svdvals = widened(torch.linalg.svdvals)


@widened
@square
def cholesky(x: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """Return the triangular factor L of x = L L^H."""
    return torch.linalg.cholesky(x, upper=upper)


@widened
def qr(x: torch.Tensor, mode: str = "reduced") -> Any:
    """Return the factors of x = Q R."""
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f'qr: mode must be "reduced" or "complete", not {mode!r}')
    if mode == "reduced" or x.shape[-2] <= x.shape[-1] or not is_tracked(x):
        return torch.linalg.qr(x, mode)
    q, r = torch.linalg.qr(x)
    whole, below = torch.linalg.qr(x.detach(), mode)
    size = r.shape[-2]
    return _completed(q, whole[..., size:]), torch.cat([r, below[..., size:, :]], -2)


@widened
def svd(x: torch.Tensor, full_matrices: bool = True) -> Any:
    """Return the factors of x = U diag(S) Vh."""
    u, s, vh = torch.linalg.svd(x, full_matrices)
    if full_matrices and is_tracked(x):
        size = s.shape[-1]
        u = _completed(u[..., :size], u[..., size:])
        vh = _completed(vh.mH[..., :size], vh.mH[..., size:]).mH
    return u, s, vh


def _completed(basis: Any, rest: Any) -> torch.Tensor:
    """Return orthonormal columns and the rest of a basis, for which torch has no gradient.

    The rest is orthogonalized again: this keeps its values and adds a graph.
    """
    if rest.shape[-1] == 0:
        return basis
    rest = rest.detach()
    q, r = torch.linalg.qr(rest - basis @ (basis.mH @ rest))
    signs = r.detach().diagonal(dim1=-2, dim2=-1).real.sign()
    return torch.cat([basis, q * signs[..., None, :]], -1)
