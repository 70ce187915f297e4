"""Operands with values of one's own, and comparisons that see the sign of zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor
from tests.conformance.table import Sample


def fixed(*values: Any, column: bool = False, dtype: str | None = None) -> Sample:
    """An operand of these values, in the dtype under test; exact where they are small."""
    shape = (len(values), 1) if column else (len(values),)
    return Sample(
        shape, dtype=dtype, transform=lambda array: np.array(values, array.dtype).reshape(shape)
    )


def by_dtype(size: int, values: Callable[[np.dtype], Any]) -> Sample:
    """An operand of `size` values that depend on the dtype (float32 when it is bfloat16)."""
    return Sample((size,), transform=lambda array: np.array(values(array.dtype), array.dtype))


def top(*below: int) -> Sample:
    """The greatest integers of the dtype under test, so many below its maximum."""
    return by_dtype(len(below), lambda dtype: [np.iinfo(dtype).max - step for step in below])


def host(tensor: EmberTensor) -> Any:
    """The tensor's values as a NumPy array."""
    return runtime.LOADED[tensor.backend].to_portable(tensor.native)


def signed(reference: Callable[..., Any]) -> Callable[..., None]:
    """A check that values are close to the reference's, with the same signs, those of zeros too."""

    def check(result: Any, *values: Any, **kwargs: Any) -> None:
        got, want = host(result), np.asarray(reference(*values, **kwargs))
        np.testing.assert_allclose(got, want, rtol=4e-3, atol=0, equal_nan=True)
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(want)[known])

    return check


def exact(*want: Any, dtype: str | None = None) -> Callable[..., None]:
    """A check that the values are these, whatever the dtype."""

    def check(result: Any, *values: Any, **kwargs: Any) -> None:
        got = host(result)
        if dtype is not None:
            assert result.dtype.name == dtype
        assert got.reshape(-1).tolist() == list(want)

    return check
