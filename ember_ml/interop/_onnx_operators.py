"""Operators of torch that its ONNX exporter lacks, in terms of operators that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _solve_triangular(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> torch.Tensor:
    """Solve a triangular system by substitution, in blocks of half the size."""
    if not left:
        x = _solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular)
        return x.mT
    if upper:  # the equations in reverse order are lower triangular
        x = _solve_lower(a.flip(-2, -1), b.flip(-2), unitriangular)
        return x.flip(-2)
    return _solve_lower(a, b, unitriangular)


def _solve_lower(a: torch.Tensor, b: torch.Tensor, unitriangular: bool) -> torch.Tensor:
    size = a.shape[-1]
    if size <= 1:
        return b if unitriangular else b / a
    half = size // 2
    first = _solve_lower(a[..., :half, :half], b[..., :half, :], unitriangular)
    rest = b[..., half:, :] - a[..., half:, :half] @ first
    second = _solve_lower(a[..., half:, half:], rest, unitriangular)
    return torch.cat([first, second], -2)


def _sort(
    x: torch.Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sort by TopK, which in ONNX has equal elements in the order of their indices."""
    values, indices = torch.topk(x, x.shape[dim], dim, descending, True)
    return values, indices


def _argsort(
    x: torch.Tensor, *, stable: bool, dim: int = -1, descending: bool = False
) -> torch.Tensor:
    """Return the order that `_sort` sorts by."""
    return _sort(x, stable=stable, dim=dim, descending=descending)[1]


def _expand(x: torch.Tensor, size: Sequence[int], *, implicit: bool = False) -> Any:
    """Expand complex numbers as pairs of real numbers."""
    if not x.is_complex():
        return NotImplemented
    return torch.view_as_complex(torch.view_as_real(x).expand(*size, 2))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.linalg_solve_triangular.default: _solve_triangular,
    aten.sort.stable: _sort,
    aten.argsort.stable: _argsort,
    aten.expand.default: _expand,
}
"""Functions by the operator that they replace."""


def replace_operators(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return a program without the operators that ONNX's exporter lacks.

    Args:
        program: The program.
    """
    lacking = any(_is_lacking(node) for node in program.graph.nodes)
    return program.run_decompositions(DECOMPOSITIONS) if lacking else program


def _is_lacking(node: torch.fx.Node) -> bool:
    is_real = node.target is aten.expand.default and not node.meta["val"].is_complex()
    return node.target in DECOMPOSITIONS and not is_real
