"""Determinants with derivatives of every order, at singular matrices too."""

from __future__ import annotations

import math
from typing import Any

import torch

from ember_ml.backend.torch.custom import custom_vjp, fused_once
from ember_ml.backend.torch.nesting import unwrapped

_SMALL = 0.01  # a singular value below this part of the largest one is shifted


def det(x: torch.Tensor) -> torch.Tensor:
    """Return the determinant.

    Torch's derivative is not finite when `torch.func` transforms differentiate it again.
    """
    return fused_once(torch.linalg.det, _det, (x,))


def _det(x: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_compiling():
        return _traced_det(x)

    def pull(arrays: Any, cotangents: Any, again: bool) -> list[torch.Tensor]:
        return [cotangents[0][..., None, None] * _cofactors(arrays[0])]

    return custom_vjp(lambda x: (torch.linalg.det(x),), pull, (x,))[0]


def _traced_det(x: torch.Tensor) -> torch.Tensor:
    """Return the interpolated determinant: the compiler does not trace custom gradients."""
    if x.shape[-1] == 0:
        return torch.linalg.det(x)
    nodes, weights = _interpolation(x.shape[-1] + 1, x)
    shift = _shift(x.detach(), nodes)
    assert shift is not None
    sign, log_size = torch.linalg.slogdet(x + nodes * shift)
    return (sign * log_size.exp() * weights[..., 0, 0]).sum(0)


def _regular_det(x: torch.Tensor) -> torch.Tensor:
    """Return the determinant of matrices that are not singular."""

    def pull(arrays: Any, cotangents: Any, again: bool) -> list[torch.Tensor]:
        return [cotangents[0][..., None, None] * _regular_cofactors(arrays[0])]

    return custom_vjp(lambda x: (torch.linalg.det(x),), pull, (x,))[0]


def _regular_cofactors(x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the determinant, conj(det(x)) x^-H."""
    return _regular_det(x).conj()[..., None, None] * torch.linalg.inv_ex(x)[0].mH


def _cofactors(x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the determinant, interpolated if a matrix is nearly singular.

    The cofactors of x + t p are polynomials in t of a degree below n. With a matrix p of the
    smallest singular vectors, x + t p is singular at no node.
    """
    if x.shape[-1] == 0:
        return torch.zeros_like(x)
    nodes, weights = _interpolation(x.shape[-1], x)
    shift = _shift(x.detach(), nodes)
    if shift is None:
        return _regular_cofactors(x)
    return (_regular_cofactors(x + nodes * shift) * weights).sum(0)


def _shift(x: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor | None:
    """Return the distance from x to the node 1; None if no matrix is nearly singular."""
    u, s, vh = torch.linalg.svd(torch.where(torch.isfinite(x), x, 0.0))
    largest = s.amax(-1, keepdim=True)
    small = s <= _SMALL * largest
    if not torch.compiler.is_compiling() and not unwrapped(small).any():
        return None
    length = torch.where(largest > 0, largest * (5 * _SMALL / nodes.abs().amin()), 1.0)
    return (u * torch.where(small, length, 0.0)[..., None, :].to(x.dtype)) @ vh


def _interpolation(count: int, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Chebyshev nodes and the weights of a polynomial's value at 0, before the axes of x.

    The number of nodes is even, so that 0 is not among them.
    """
    count += count % 2
    angles = [(2 * at + 1) * math.pi / (2 * count) for at in range(count)]
    nodes = [math.cos(angle) for angle in angles]
    terms = [(-1) ** at * math.tan(angle) for at, angle in enumerate(angles)]
    total = math.fsum(terms)
    pair = torch.tensor([nodes, [term / total for term in terms]], device=x.device, dtype=x.dtype)
    rows, columns = pair.reshape(2, -1, *[1] * x.ndim)
    return rows, columns
