"""Matrices to decompose, and comparisons of results that are not unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.fixed import host
from tests.conformance.runner import TOLERANCE
from tests.conformance.table import Sample, real


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of the last two axes."""
    return np.conj(np.swapaxes(x, -2, -1))


def _regular(x: Any) -> Any:
    identity = np.eye(x.shape[-1], dtype=x.dtype)
    if x.dtype == bool:
        return np.tril(x) | identity
    return x + 6 * identity


def regular(*shape: int, **options: Any) -> Sample:
    """Return invertible square matrices."""
    return real(*shape, low=-2, high=2, transform=_regular, **options)


def _hermitian(x: Any) -> Any:
    return np.tril(x, -1) + adjoint(np.tril(x, -1)) + 2 * np.eye(x.shape[-1]) * np.real(x)


def hermitian(*shape: int, **options: Any) -> Sample:
    """Return symmetric or Hermitian matrices."""
    return real(*shape, transform=_hermitian, **options)


def positive_definite(*shape: int, **options: Any) -> Sample:
    """Return Hermitian matrices with eigenvalues above 1."""
    return real(
        *shape,
        low=-2,
        high=2,
        transform=lambda x: x @ adjoint(x) + np.eye(x.shape[-1]),
        **options,
    )


def numbers(tensor: Any) -> Any:
    """Return a tensor's values in double precision."""
    values = host(tensor)
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def close(got: Any, want: Any, dtype: Any, factor: float = 10.0) -> None:
    """Compare values that were computed in `dtype`."""
    got, want = np.broadcast_arrays(got, want)
    tolerance = factor * TOLERANCE[dtype.name]
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def orthonormal(tensor: Any, dtype: Any) -> None:
    """Check that the columns are orthonormal."""
    columns = numbers(tensor)
    close(adjoint(columns) @ columns, np.eye(columns.shape[-1]), dtype)
