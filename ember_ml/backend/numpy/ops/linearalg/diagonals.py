"""Diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np


def diagonal(x: np.ndarray, offset: int = 0, axis1: int = -2, axis2: int = -1) -> np.ndarray:
    """Return a diagonal of the matrices in two axes."""
    return np.diagonal(x, offset, axis1, axis2)


def diag_embed(x: np.ndarray, offset: int = 0, axis1: int = -2, axis2: int = -1) -> np.ndarray:
    size = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    index = np.arange(x.shape[-1])
    out[..., index + max(-offset, 0), index + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


def _block_diag(tensors: list[Any]) -> np.ndarray:
    blocks = [np.atleast_2d(block) for block in tensors]
    if any(block.ndim > 2 for block in blocks):
        raise ValueError("the shapes must be those of matrices")
    out = np.zeros(np.sum([block.shape for block in blocks], axis=0), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        rows, columns = block.shape
        out[row : row + rows, column : column + columns] = block
        row, column = row + rows, column + columns
    return out
