"""Making tensors: what the conformance table does not cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import ops
from tests.backends import has_dtype, other_than


def test_defaults_follow_the_kind_of_number(backend: str) -> None:
    assert ops.full(2, True).dtype == "bool"
    assert ops.full(2, 1).dtype == "int64"
    assert ops.full(2, 1.5).dtype == "float32"
    assert ops.full(2, 1j).dtype == "complex64"
    assert ops.full(2, np.float16(1)).dtype == "float16"
    assert ops.arange(3).dtype == "int64"
    assert ops.arange(3.0).dtype == ops.arange(0, 3, 0.5).dtype == "float32"
    assert ops.linspace(0, 1, 3).dtype == ops.zeros(2).dtype == ops.identity(2).dtype == "float32"


def test_full_takes_a_tensor(backend: str) -> None:
    out = ops.full((2, 2), ops.asarray(3))
    assert (out.dtype, out.tolist()) == ("int64", [[3, 3], [3, 3]])
    assert ops.full_like(ops.zeros(2), ops.asarray(3)).tolist() == [3.0, 3.0]


def test_like_stays_on_the_backend_of_its_tensor(backend: str) -> None:
    x = ops.ones(2)
    other = other_than(backend)
    with ember_ml.use_backend(other):
        for made in (ops.zeros_like(x), ops.ones_like(x), ops.full_like(x, 2.0), ops.empty_like(x)):
            assert made.backend == backend
        assert ops.quantile(x, [0.5]).backend == backend
        assert ops.histogram(x, bins=3)[1].backend == backend
        assert ops.cumulative_sum(x, include_initial=True).backend == backend
        assert ops.vander(x).backend == backend


def test_identity_and_meshgrid(backend: str) -> None:
    assert ops.identity(2, dtype="int8").tolist() == [[1, 0], [0, 1]]
    columns, rows = ops.meshgrid([1, 2, 3], [4, 5])
    assert columns.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert rows.tolist() == [[4, 4, 4], [5, 5, 5]]
    assert [part.shape for part in ops.meshgrid([1, 2, 3], [4, 5], indexing="ij")] == [(3, 2)] * 2
    assert ops.meshgrid() == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.zeros(-1), ValueError),
        (lambda: ops.zeros((2, -3)), ValueError),
        (lambda: ops.full((2, -3), 1.0), ValueError),
        (lambda: ops.zeros(2, device="abacus"), ValueError),
        (lambda: ops.zeros_like([1.0], device="abacus"), ValueError),
        (lambda: ops.full(2, 1, device="abacus"), ValueError),
        (lambda: ops.full(2, 300, dtype="uint8"), OverflowError),
        (lambda: ops.full(2, 1j, dtype="float32"), TypeError),
        (lambda: ops.zeros(2, dtype="float33"), TypeError),
        (lambda: ops.arange(0, 3, 0), ValueError),
        (lambda: ops.linspace(0, 1, -1), ValueError),
        (lambda: ops.geomspace(-1, 1), ValueError),
        (lambda: ops.geomspace(0, 1), ValueError),
        (lambda: ops.meshgrid([1], indexing="ab"), ValueError),
        (lambda: ops.tril([1.0, 2.0]), ValueError),
        (lambda: ops.vander([[1.0]]), ValueError),
        (lambda: ops.asarray([1, 2], copy=False), ValueError),
        (lambda: ops.asarray(2.0, copy=False), ValueError),
        (lambda: ops.asarray("12"), TypeError),
        (lambda: ops.from_dlpack([1.0]), TypeError),
    ],
)
def test_what_makes_no_tensor_raises(call: Any, error: type[Exception], backend: str) -> None:
    with pytest.raises(error):
        call()


def test_asarray_returns_a_tensor_as_it_is(backend: str) -> None:
    x = ops.ones(3)
    assert ops.asarray(x) is x
    assert ops.asarray(x, copy=False) is x
    assert ops.asarray(x, dtype="float32").native is x.native
    with pytest.raises(ValueError, match="copy"):
        ops.asarray(x, dtype="int32", copy=False)


@pytest.mark.parametrize("make", [lambda x: ops.asarray(x, copy=True), ops.array])
def test_a_copy_shares_no_memory(make: Any, backend: str) -> None:
    data = np.ones(3, np.float32)
    x = make(data)
    data[0] = 5.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    y = make(x)
    x[0] = 7.0
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_from_dlpack_reads_other_libraries(backend: str) -> None:
    for source in (np.arange(3.0, dtype=np.float32), torch.arange(3.0), ops.arange(3.0)):
        x = ops.from_dlpack(source)
        assert (x.backend, x.dtype, x.tolist()) == (backend, "float32", [0.0, 1.0, 2.0])
        assert ops.from_dlpack(source, copy=True).tolist() == [0.0, 1.0, 2.0]
    torch.from_dlpack(ops.ones(2))


def test_empty_lengths_and_exact_ends(backend: str) -> None:
    assert ops.arange(0, 1, 0.1).shape == (10,)
    assert ops.arange(5, 0).shape == ops.linspace(0, 1, 0).shape == (0,)
    assert ops.arange(2**62, 2**62 + 2).tolist() == [2**62, 2**62 + 1]
    for num in (2, 3, 7, 1000):
        assert ops.linspace(0.1, 0.7, num).tolist()[-1] == float(np.float32(0.7))


def test_namespace_info_tells_of_the_active_backend(backend: str) -> None:
    info = ops.__array_namespace_info__()
    assert set(info.capabilities()) == {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["indexing"] == "int64"
    assert {name for name in info.dtypes() if not has_dtype(backend, name)} == set()
    assert "float16" not in info.dtypes()
    assert set(info.dtypes(kind="real floating")) <= {"float32", "float64"}
    assert "bool" in info.dtypes(kind=("bool", "complex floating"))
    assert info.dtypes(device=info.default_device()) == info.dtypes()
    with pytest.raises(ValueError, match="abacus"):
        info.dtypes(device="abacus")
    assert ops.__array_api_version__ == "2024.12"
    assert (ops.newaxis, ops.inf, ops.nan != ops.nan) == (None, float("inf"), True)
    assert (ops.pi, ops.e) == (np.pi, np.e)
