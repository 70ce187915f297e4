"""Operands with fixed values, and comparisons that include the sign of zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor
from tests.conformance.table import Sample


def fixed(*values: Any, column: bool = False, dtype: str | None = None) -> Sample:
    """Return an operand with these values, in the tested dtype."""
    shape = (len(values), 1) if column else (len(values),)
    return Sample(
        shape, dtype=dtype, transform=lambda array: np.array(values, array.dtype).reshape(shape)
    )


def by_dtype(size: int, values: Callable[[np.dtype], Any]) -> Sample:
    """Return an operand of `size` values that depend on the dtype (float32 for bfloat16)."""
    return Sample((size,), transform=lambda array: np.array(values(array.dtype), array.dtype))


def top(*below: int) -> Sample:
    """Return the largest integers of the tested dtype, at these distances from its maximum."""
    return by_dtype(len(below), lambda dtype: [np.iinfo(dtype).max - step for step in below])


def host(tensor: EmberTensor) -> Any:
    """Return the tensor's values as a NumPy array."""
    return runtime.LOADED[tensor.backend].to_portable(tensor.native)


def signed(reference: Callable[..., Any]) -> Callable[..., None]:
    """Return a check of values and signs, including the signs of zeros."""

    def check(result: Any, *values: Any, **kwargs: Any) -> None:
        got, want = host(result), np.asarray(reference(*values, **kwargs))
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=0, equal_nan=True)
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])

    return check


def exact(*want: Any, dtype: str | None = None) -> Callable[..., None]:
    """Return a check for exactly these values."""

    def check(result: Any, *values: Any, **kwargs: Any) -> None:
        got = host(result)
        if dtype is not None:
            assert result.dtype.name == dtype
        assert got.reshape(-1).tolist() == list(want)

    return check
