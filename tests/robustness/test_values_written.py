"""Numbers that do not fit an integer dtype are the same error on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.nn import tensor

BAD = {"int32": (float("nan"), float("inf"), -float("inf"), 1e30, 2**31), "uint8": (-1, 256.0)}


def assign(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "item": lambda x, value: assign(x, 0, value),
    "slice": lambda x, value: assign(x, slice(0, 2), value),
    "list": lambda x, value: assign(x, slice(0, 2), [value, 1]),
    "NumPy array": lambda x, value: assign(x, slice(0, 2), np.array([value, 1])),
    "mask": lambda x, value: assign(x, x > 1, value),
    "index_update": lambda x, value: ops.index_update(x, 0, value),
    "index_add": lambda x, value: ops.index_add(x, 0, value),
    "masked_fill": lambda x, value: ops.masked_fill(x, x > 1, value),
    "put_along_axis": lambda x, value: ops.put_along_axis(x, [0], value, axis=0),
    "dynamic_update_slice": lambda x, value: ops.dynamic_update_slice(x, [value], [0]),
    "insert": lambda x, value: ops.insert(x, 0, value),
    "pad": lambda x, value: ops.pad(x, 1, constant_values=value),
    "full": lambda x, value: ops.full((2,), value, dtype=x.dtype),
    "full_like": lambda x, value: ops.full_like(x, value),
    "array": lambda x, value: tensor.array([value], dtype=x.dtype),
    "number": lambda x, value: tensor.array(value, dtype=x.dtype),
    "array of NumPy": lambda x, value: tensor.array(np.array([value]), dtype=x.dtype),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_number_that_does_not_fit(backend: str, name: str) -> None:
    for dtype, values in BAD.items():
        for value in values:
            x = tensor.array([1, 2, 3], dtype=dtype)
            with pytest.raises(OverflowError, match="does not fit"):
                WRITES[name](x, value)
            assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", WRITES)
def test_a_number_that_fits_loses_its_fraction(backend: str, name: str) -> None:
    for value in (2.0, 2.75):
        got = WRITES[name](tensor.array([0, 2, 3], dtype="int32"), value)
        assert got.dtype == "int32"
        assert 2 in got.reshape(-1).tolist()


@pytest.mark.parametrize("bound", [float("nan"), float("inf")])
def test_bounds_of_integers(backend: str, bound: float) -> None:
    with pytest.raises(ValueError, match="not a valid bound"):
        ops.clip(tensor.array([1, 2]), bound, None)


def test_results_of_empty_and_0d_operands(backend: str) -> None:
    assert ops.argmax(tensor.array(3.0), keepdims=True).shape == ()
    for shape in ((0, 3), (3, 0), (0, 0)):
        assert ops.linalg.pinv(ops.zeros(shape)).shape == shape[::-1]
    x = ops.linalg.lstsq(ops.zeros((0, 3)), ops.zeros((0, 2)))[0]
    np.testing.assert_array_equal(x.numpy(), np.zeros((3, 2)))
    assert ops.diff(tensor.array([1.0, 4.0]), n=0, append=[9.0]).tolist() == [1.0, 4.0, 9.0]
    np.testing.assert_allclose(ops.stats.cov(tensor.array([[1.0, 2.0, 4.0]])).numpy(), [[7 / 3]])
    with pytest.raises(ValueError, match="argmax"):
        ops.argmax(ops.zeros((0,)))


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, -1, float("inf"), -float("inf")])
def test_normalize_divides_by_the_norm_of_any_order(backend: str, p: float) -> None:
    x = np.array([[3.0, -4.0, 2.0], [1.0, -0.5, 8.0]], np.float32)
    want = x / np.linalg.norm(x, p, axis=1, keepdims=True)
    np.testing.assert_allclose(ops.normalize(tensor.array(x), p=p).numpy(), want, rtol=1e-5)
    assert ops.normalize(tensor.array([0.0, 2.0]), p=0).tolist() == [0.0, 2.0]
