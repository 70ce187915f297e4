"""Linear systems."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.torch.nesting import is_tracked
from ember_ml.backend.torch.ops.linearalg.precision import square, widened

inv = widened(square(torch.linalg.inv))


def _columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return y as matrices; torch treats y as vectors wherever its shape allows it."""
    if y.ndim == 1:
        return y.unsqueeze(-1)
    if y.ndim == 0:
        raise ValueError("y must have at least one axis")
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return y.expand(*batch, *y.shape[-2:])


@widened
@square
def solve(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.linalg.solve(x, _columns(x, y))
    return out.squeeze(-1) if y.ndim == 1 else out


@widened
@square
def solve_triangular(
    x: torch.Tensor, y: torch.Tensor, upper: bool = False, unit_diagonal: bool = False
) -> torch.Tensor:
    columns = _columns(x, y)
    out = torch.linalg.solve_triangular(x, columns, upper=upper, unitriangular=unit_diagonal)
    return out.squeeze(-1) if y.ndim == 1 else out


def pinv(x: torch.Tensor, rtol: torch.Tensor | None = None) -> torch.Tensor:
    """Return the pseudo-inverse; torch's gradient holds where that of singular vectors fails."""
    if rtol is not None and is_tracked(x):
        return _cut_pinv(x, rtol)
    tolerance = max(x.shape[-2:]) * torch.finfo(x.dtype).eps if rtol is None else rtol
    return widened(torch.linalg.pinv)(x, rtol=tolerance)


@widened
def _cut_pinv(x: torch.Tensor, rtol: Any) -> torch.Tensor:
    """Drop singular values below a limit, for which torch's gradient does not hold."""
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    limit = torch.as_tensor(rtol, device=x.device).unsqueeze(-1) * s.amax(-1, keepdim=True)
    significant = s > limit
    inverse = torch.where(significant, 1 / torch.where(significant, s, 1.0), 0.0)
    return (vh.mH * inverse.unsqueeze(-2)) @ u.mH
