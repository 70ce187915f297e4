"""Creation of arrays. Ranges are computed in float64 and rounded once."""

from __future__ import annotations

from typing import Any

import torch
from torch import empty_like as empty_like
from torch import ones_like as ones_like
from torch import zeros_like as zeros_like

from ember_ml._core.types import ShapeLike
from ember_ml.backend.axes import listed, sides, within
from ember_ml.backend.torch import cast


def zeros(shape: ShapeLike, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.zeros(shape if type(shape) is tuple else listed(shape), dtype=dtype, device=device)


def ones(shape: ShapeLike, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.ones(shape if type(shape) is tuple else listed(shape), dtype=dtype, device=device)


def empty(shape: ShapeLike, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.empty(shape if type(shape) is tuple else listed(shape), dtype=dtype, device=device)


def filled(x: torch.Tensor, shape: ShapeLike) -> torch.Tensor:
    return x.expand(listed(shape)).clone(memory_format=torch.contiguous_format)


def _offsets(n_rows: int, n_cols: int, device: str) -> torch.Tensor:
    """Return the offset of each element from the main diagonal."""
    return torch.arange(n_cols, device=device) - torch.arange(n_rows, device=device)[:, None]


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: torch.dtype, device: str
) -> torch.Tensor:
    n_rows, n_cols = sides(n_rows, n_cols)
    return (_offsets(n_rows, n_cols, device) == within(k, n_rows, n_cols)).to(dtype)


def tri(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: torch.dtype, device: str
) -> torch.Tensor:
    n_rows, n_cols = sides(n_rows, n_cols)
    return (_offsets(n_rows, n_cols, device) <= within(k, n_rows, n_cols)).to(dtype)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: torch.dtype,
    device: str,
) -> torch.Tensor:
    """Return a range; integers are exact."""
    if step == 0:
        raise ValueError("step must not be 0")
    start, stop = (0, start) if stop is None else (start, stop)
    if (stop - start) / step <= 0:
        return torch.empty(0, dtype=dtype, device=device)
    exact = all(isinstance(value, int) for value in (start, stop, step))
    values = torch.arange(start, stop, step, dtype=torch.int64 if exact else torch.float64)
    return values.to(dtype).to(device)


def _linspace(start: Any, stop: Any, num: int, endpoint: bool) -> torch.Tensor:
    wide = torch.complex128 if isinstance(start + stop, complex) else torch.float64
    return torch.linspace(start, stop, num if endpoint else num + 1, dtype=wide)[:num]


def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    *,
    dtype: torch.dtype,
    device: str,
    endpoint: bool = True,
) -> torch.Tensor:
    """Return evenly spaced numbers, rounded down for integer dtypes."""
    values = _linspace(start, stop, num, endpoint)
    whole = not dtype.is_floating_point and not dtype.is_complex
    return cast(values.floor() if whole else values, dtype).to(device)


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: torch.dtype,
    device: str,
    endpoint: bool = True,
) -> torch.Tensor:
    return cast(torch.pow(base, _linspace(start, stop, num, endpoint)), dtype).to(device)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    dtype: torch.dtype,
    device: str,
    endpoint: bool = True,
) -> torch.Tensor:
    if not start * stop > 0:
        raise ValueError(f"start={start} and stop={stop} must be nonzero and have the same sign")
    values = start * torch.pow(stop / start, _linspace(0.0, 1.0, num, endpoint))
    if endpoint and num > 1:
        values[-1] = stop
    return cast(values, dtype).to(device)


def tril(x: torch.Tensor, k: int = 0) -> torch.Tensor:
    return torch.tril(x, within(k, *x.shape[-2:]) if x.ndim > 1 else 0)


def triu(x: torch.Tensor, k: int = 0) -> torch.Tensor:
    return torch.triu(x, within(k, *x.shape[-2:]) if x.ndim > 1 else 0)


def coordinate_matrices(tensors: Any, indexing: str = "xy") -> list[torch.Tensor]:
    """Return the coordinates of a grid."""
    return torch.meshgrid(*tensors, indexing=indexing)
