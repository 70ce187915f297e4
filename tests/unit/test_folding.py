"""Reductions, running values and order: errors, aliases, silence, gradients."""

from __future__ import annotations

import warnings
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import ops
from ember_ml._core.tensor import wrap
from ember_ml.backend import use_backend

NAN = float("nan")


def test_the_seeds_names_are_the_same_functions() -> None:
    for name in ("sum", "mean", "max", "min", "prod", "std", "var", "any", "all"):
        assert getattr(ops, f"reduce_{name}") is getattr(ops, name)
    assert ops.amax is ops.max
    assert ops.amin is ops.min
    for name in (
        *("mean", "var", "std", "median", "percentile", "quantile", "max", "min", "sum", "prod"),
        *("cumsum", "cumprod", "cummax", "cummin", "argmax", "argmin", "sort", "argsort", "topk"),
        *("logsumexp", "histogram", "bincount"),
    ):
        assert getattr(ops.stats, name) is getattr(ops, name)


X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.max(ops.zeros((0, 3)), axis=0), ValueError),
        (lambda: ops.min([]), ValueError),
        (lambda: ops.argmax(ops.zeros((2, 0)), axis=1), ValueError),
        (lambda: ops.argmin([]), ValueError),
        (lambda: ops.nanmax([]), ValueError),
        (lambda: ops.max([1j]), TypeError),
        (lambda: ops.sort([1j]), TypeError),
        (lambda: ops.argmax(X, axis=(0, 1)), TypeError),
        (lambda: ops.sum(X, axis=(0, 0)), ValueError),
        (lambda: ops.prod(X, axis=(0, -2)), ValueError),
        (lambda: ops.sum([1j], dtype="float32"), TypeError),
        (lambda: ops.topk(X, 4), ValueError),
        (lambda: ops.topk(X, -1), ValueError),
        (lambda: ops.searchsorted(X, [1.0]), ValueError),
        (lambda: ops.searchsorted([1.0], X, side="middle"), ValueError),
        (lambda: ops.searchsorted([1.0, 2.0], X, sorter=[0.5, 1.0]), TypeError),
        (lambda: ops.bincount([1, -1]), ValueError),
        (lambda: ops.bincount([1.0]), TypeError),
        (lambda: ops.bincount([[1]]), ValueError),
        (lambda: ops.bincount([1, 2], weights=[1.0]), ValueError),
        (lambda: ops.histogram([1.0], bins=0), ValueError),
        (lambda: ops.histogram([1.0], bins=[1.0]), ValueError),
        (lambda: ops.histogram([1.0], range=(2, 1)), ValueError),
        (lambda: ops.quantile(X, 1.5), ValueError),
        (lambda: ops.quantile(X, 0.5, method="cubic"), ValueError),
        (lambda: ops.quantile(X, 0.5, axis=2), ValueError),
        (lambda: ops.percentile(X, 101), ValueError),
        (lambda: ops.cumulative_sum(X), ValueError),
        (lambda: ops.cumulative_prod(2.0), ValueError),
        (lambda: ops.diff(X, n=-1), ValueError),
        (lambda: ops.diff(2.0), ValueError),
        (lambda: ops.diff(X, prepend=[2.0]), ValueError),
        (lambda: ops.stats.cov([[[1.0]]]), ValueError),
    ],
)
def test_what_cannot_be_folded_raises(call: Any, error: type[Exception], backend: str) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(
    "name",
    [
        *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "count_nonzero"),
        *("logsumexp", "argmax", "argmin", "nansum", "nanmean", "nanvar", "nanmax", "median"),
        *("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "cumulative_sum", "diff"),
        *("sort", "argsort"),
    ],
)
def test_an_axis_that_is_not_there_raises(name: str, backend: str) -> None:
    function = getattr(ops, name)
    for x, axis in ((X, 2), (X, -3), (2.0, 0)):
        with pytest.raises((IndexError, ValueError)):
            function(ops.asarray(x), axis=axis)


def test_nothing_and_nan_are_folded_in_silence(backend: str) -> None:
    hole, empty = ops.asarray([NAN, NAN]), ops.zeros((2, 0))
    with warnings.catch_warnings(action="error"):
        for value in (
            *(ops.mean(empty), ops.var(empty), ops.std(empty, correction=1), ops.median(empty)),
            *(ops.var(ops.ones(1), correction=1), ops.std(ops.ones(2), correction=3)),
            *(ops.nanmean(hole), ops.nanvar(hole), ops.nanstd(hole), ops.nanmax(hole)),
            *(ops.nanmin(hole), ops.quantile(hole, 0.5), ops.stats.skew(ops.ones(3))),
            *(ops.stats.kurtosis(ops.ones(3)), ops.stats.cov([1.0]), ops.max(hole)),
        ):
            assert np.isnan(value.item())
        assert ops.sum(empty).item() == ops.nansum(hole).item() == 0
        assert ops.logsumexp(empty).item() == ops.logsumexp([-np.inf, -np.inf]).item() == -np.inf
        assert ops.logcumsumexp([1.0, NAN]).tolist()[0] == 1.0


def test_quantiles_may_be_a_tensor(backend: str) -> None:
    x = ops.asarray([3.0, 1.0, 2.0, 5.0])
    q = ops.asarray([[0.0, 0.5], [0.25, 1.0]])
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        want = np.quantile(x.numpy(), q.numpy(), method=method)
        np.testing.assert_allclose(ops.quantile(x, q, method=method).numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(ops.percentile(x, ops.asarray(30)).item(), 1.9, rtol=1e-6)
    assert ops.quantile(x, np.array([0.5])).tolist() == [2.5]


def test_topk_names_its_parts(backend: str) -> None:
    values, indices = found = ops.topk([3.0, 1.0, 2.0], 2)
    assert found.values is values
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [0, 2])


DIFFERENTIABLE = {
    "sum": lambda x: ops.sum(x, axis=1),
    "prod": lambda x: ops.prod(x, axis=(0, 1)),
    "mean": lambda x: ops.mean(x, axis=(0, 1), keepdims=True),
    "var": lambda x: ops.var(x, axis=0, correction=1),
    "std": lambda x: ops.std(x, axis=1),
    "max": lambda x: ops.max(x, axis=0),
    "logsumexp": lambda x: ops.logsumexp(x, axis=1),
    "nanmean": lambda x: ops.nanmean(x, axis=1),
    "nanvar": lambda x: ops.nanvar(x, axis=1),
    "cumsum": lambda x: ops.cumsum(x, axis=1),
    "cumprod": lambda x: ops.cumprod(x, axis=1),
    "cummax": lambda x: ops.cummax(x, axis=1),
    "logcumsumexp": lambda x: ops.logcumsumexp(x, axis=1),
    "diff": lambda x: ops.diff(x, n=2),
    "trapezoid": ops.trapezoid,
    "sort": lambda x: ops.sort(x, axis=1, descending=True),
    "topk": lambda x: ops.topk(x, 2).values,
    "median": lambda x: ops.median(x, axis=0),
    "quantile": lambda x: ops.quantile(x, [0.2, 0.7], axis=1),
    "tril": ops.tril,
    "standardize": lambda x: ops.stats.standardize(x, 1),
    "skew": lambda x: ops.stats.skew(x, 1),
    "cov": ops.stats.cov,
    "gaussian": lambda x: ops.stats.gaussian(x, 0.5, 2.0),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_torch_and_mlx_differentiate_alike(name: str) -> None:
    function = DIFFERENTIABLE[name]
    data = np.random.default_rng(0).permutation(np.linspace(-2.0, 2.3, 12)).reshape(3, 4)
    weight = np.linspace(0.5, 1.5, 12)

    def loss(x: Any, backend: str) -> Any:
        out = ops.reshape(function(wrap(x, backend)), (-1,))
        return ops.sum(out * out * ops.asarray(weight[: out.size].astype(np.float32))).native

    leaf = torch.tensor(data, dtype=torch.float32, requires_grad=True)
    with use_backend("torch"):
        loss(leaf, "torch").backward()
    with use_backend("mlx"):
        gradient = mx.grad(lambda x: loss(x, "mlx"))(mx.array(data.astype(np.float32)))
    np.testing.assert_allclose(np.array(gradient), leaf.grad.numpy(), rtol=2e-4, atol=2e-4)
