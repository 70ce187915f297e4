"""Arguments at the edge of what ops accept: the same results on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.nn import tensor
from ember_ml.ops.joining import split_at
from tests.backends import is_lazy

SPECTRA = (ops.fft.fftn, ops.fft.ifftn, ops.fft.fft2, ops.fft.ifft2)
REAL = (ops.fft.rfftn, ops.fft.irfftn, ops.fft.rfft2, ops.fft.irfft2)
CUBE = np.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("function", SPECTRA)
def test_transforms_of_no_axes_are_complex(backend: str, function: Any) -> None:
    for dtype in ("float32", "float16"):
        x = tensor.array(CUBE, dtype=dtype)
        for axes in ((), (0, 1), ()):  # the dtype must not depend on earlier calls
            y = function(x, axes=axes)
            assert y.dtype == y.numpy().dtype.name == "complex64"
        np.testing.assert_array_equal(y.numpy(), CUBE)
    assert ops.fft.fftn(tensor.array(2.0)).numpy() == 2 + 0j


@pytest.mark.parametrize("function", REAL)
def test_real_transforms_need_an_axis(backend: str, function: Any) -> None:
    with pytest.raises(ValueError, match="at least 1 axes"):
        function(tensor.array(CUBE), axes=())


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_split_at_counts_axes_from_the_end(backend: str, axis: int) -> None:
    got = split_at(tensor.array(CUBE), [1], axis=axis)
    want = np.split(CUBE, [1], axis=axis)
    for part, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)


def test_axes_beyond_the_front(backend: str) -> None:
    x, index = tensor.array(CUBE), tensor.array([0, 1])
    for call in (ops.take, ops.gather):
        with pytest.raises(ValueError, match="axis=-4"):
            call(x, index, axis=-4)
    for softmax in (ops.softmax, ops.log_softmax, ops.softmin, ops.sort, ops.argsort):
        for axis in (None, (0, 1)):
            with pytest.raises(TypeError, match="must be an integer"):
                softmax(x, axis=axis)


@pytest.mark.parametrize("method", ["linear", "lower", "nearest"])
def test_quantiles_in_a_tensor_out_of_range_are_nan(backend: str, method: str) -> None:
    x, q = tensor.array([1.0, 2.0, 3.0]), [-0.1, 0.0, 0.5, 1.0, 1.1, float("nan")]
    nan = float("nan")
    got = ops.quantile(x, tensor.array(q), method=method)
    np.testing.assert_array_equal(got.numpy(), [nan, 1, 2, 3, nan, nan])
    got = ops.percentile(x, tensor.array([-1.0, 50.0, 101.0]), method=method)
    np.testing.assert_array_equal(got.numpy(), [nan, 2, nan])
    with pytest.raises(ValueError, match="between 0 and 1"):
        ops.quantile(x, q)


@pytest.mark.parametrize("function", [ops.nll_loss, ops.cross_entropy])
@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_a_class_out_of_range(backend: str, function: Any, dtype: str) -> None:
    scores = tensor.array(np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4))
    weight = ops.ones((4,))
    for wrong in (-1, -4, -5, 4, 100):
        targets = tensor.array([0, 1, wrong], dtype=dtype)
        for options in ({}, {"weight": weight}, {"reduction": "none"}):
            if is_lazy(backend):  # a check would wait for the values
                assert np.isnan(function(scores, targets, **options).numpy()).any()
                continue
            with pytest.raises(IndexError, match="4 classes"):
                function(scores, targets, **options)
        kept = function(scores, targets, ignore_index=wrong)
        np.testing.assert_allclose(kept.numpy(), function(scores[:2], targets[:2]).numpy(), 1e-6)


def test_an_array_that_does_not_fit_into_memory(backend: str) -> None:
    if is_lazy(backend):
        pytest.skip("arrays are allocated when their values are read")
    with pytest.raises(MemoryError):
        ops.outer(ops.ones((2**23,)), ops.ones((2**23,)))
