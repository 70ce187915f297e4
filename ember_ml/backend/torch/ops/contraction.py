"""Contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import bmm as bmm
from torch import inner as inner
from torch import kron as kron
from torch import matmul as matmul
from torch import outer as outer

from ember_ml._core.errors import ArgumentTypeError


def matvec(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.ndim < 2 or y.ndim == 0:
        raise ValueError("the shapes must be those of matrices and vectors")
    if y.ndim == 1:
        return torch.matmul(x, y)
    return torch.matmul(x, y.unsqueeze(-1)).squeeze(-1)


def vdot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum of conj(x) * y over all elements."""
    return torch.vdot(x.reshape(-1), y.reshape(-1))


def vecdot(x: torch.Tensor, y: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Return the sum of conj(x) * y along an axis; integers keep their dtype."""
    x, y = x.movedim(axis, -1), y.movedim(axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"the axis has length {x.shape[-1]} in x and {y.shape[-1]} in y")
    if x.is_floating_point() or x.is_complex():
        return torch.linalg.vecdot(x, y)
    return (x * y).sum(-1, dtype=x.dtype)


def cross(x: torch.Tensor, y: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Return the cross products of vectors of length 3 along an axis."""
    x, y = x.movedim(axis, -1), y.movedim(axis, -1)
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError("the axis must have length 3 in both")
    return torch.linalg.cross(*torch.broadcast_tensors(x, y)).movedim(-1, axis)


def tensordot(
    x: torch.Tensor, y: torch.Tensor, axes: int | Sequence[int | Sequence[int]] = 2
) -> torch.Tensor:
    """Return the sum of products over several axes of equal lengths."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ValueError("axes exceeds the number of axes of x or y")
        of_x, of_y = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        of_x, of_y = ([part] if isinstance(part, int) else list(part) for part in axes)
    if [x.shape[axis] for axis in of_x] != [y.shape[axis] for axis in of_y]:
        raise ValueError("the axes to sum over differ in length")
    return torch.tensordot(x, y, (of_x, of_y))


def addmm(
    input: torch.Tensor,
    x: torch.Tensor,
    y: torch.Tensor,
    alpha: int | float = 1,
    beta: int | float = 1,
) -> torch.Tensor:
    """Return beta * input + alpha * (x @ y)."""
    scaled = isinstance(alpha, float) or isinstance(beta, float)
    if scaled and not (x.is_floating_point() or x.is_complex()):
        raise ArgumentTypeError(f"addmm: alpha={alpha} and beta={beta} do not fit {x.dtype}")
    if x.ndim == y.ndim == 2:
        return torch.addmm(input, x, y, alpha=alpha, beta=beta)
    product = torch.matmul(x, y)
    input = input.expand(product.shape)
    return product * alpha if beta == 0 else torch.add(product * alpha, input, alpha=beta)


def _einsum(tensors: list[Any], subscripts: str) -> torch.Tensor:
    return torch.einsum(subscripts, *tensors).to(tensors[0].dtype)
