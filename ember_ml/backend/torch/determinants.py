"""Determinants with derivatives of every order, at singular matrices too."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    def pull(arrays: Any, cotangents: Any, again: bool) -> list[torch.Tensor]:
        return [cotangents[0][..., None, None] * _cofactors(arrays[0])]

    return custom_vjp(lambda x: (torch.linalg.det(x),), pull, (x,))[0]


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
    shift = _shift(x.detach())
    if shift is None:
        return _regular_cofactors(x)
    nodes, weights = _interpolation(x.shape[-1])
    placed = (-1, *[1] * x.ndim)
    steps = torch.tensor(nodes, dtype=shift.dtype, device=x.device).reshape(placed)
    at_nodes = _regular_cofactors(x + steps * shift)
    return (at_nodes * torch.tensor(weights, dtype=x.dtype, device=x.device).reshape(placed)).sum(0)


def _shift(x: torch.Tensor) -> torch.Tensor | None:
    """Return the distance from x to the node 1; None if no matrix is nearly singular."""
    u, s, vh = torch.linalg.svd(torch.where(torch.isfinite(x), x, 0.0))
    largest = s.amax(-1, keepdim=True)
    small = s <= _SMALL * largest
    if not torch.compiler.is_compiling() and not unwrapped(small).any():
        return None
    nodes, _ = _interpolation(x.shape[-1])
    nearest = min(abs(node) for node in nodes)
    length = torch.where(largest > 0, largest * (5 * _SMALL / nearest), 1.0)
    return (u * torch.where(small, length, 0.0)[..., None, :].to(x.dtype)) @ vh


def _interpolation(degree: int) -> tuple[Sequence[float], Sequence[float]]:
    """Return Chebyshev nodes, 0 not among them, and the weights of a polynomial's value at 0."""
    count = degree + degree % 2
    angles = [(2 * at + 1) * math.pi / (2 * count) for at in range(count)]
    nodes = [math.cos(angle) for angle in angles]
    terms = [(-1) ** at * math.tan(angle) for at, angle in enumerate(angles)]
    total = math.fsum(terms)
    return nodes, [term / total for term in terms]
