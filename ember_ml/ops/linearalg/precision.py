"""Dtypes for linear algebra in composite ops."""

from __future__ import annotations

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import DEFAULT_FLOAT, float32
from ember_ml._core.tensor import Tensor
from ember_ml.ops.dtypes import astype, finfo

__all__: list[str] = []


def widened(x: Tensor) -> Tensor:
    """Return the tensor in a dtype that LAPACK supports: integers and half precision as float32."""
    return x if x.dtype.kind in ("float", "complex") and x.dtype.bits > 16 else astype(x, float32)


def narrowed(out: Tensor, x: Tensor) -> Tensor:
    """Return a result in the dtype of x if that is half precision."""
    is_half = x.dtype.kind == "float" and x.dtype.bits == 16
    return astype(out, x.dtype) if is_half else out


def default_rtol(x: Tensor) -> Tensor:
    """Return the relative threshold for singular values: max(m, n) * eps of x's dtype."""
    dtype = x.dtype if x.dtype.kind in ("float", "complex") else DEFAULT_FLOAT
    tolerance = max(x.shape[-2:]) * finfo(dtype).eps
    return convert_to_tensor(tolerance, float32, backend=x.backend)
