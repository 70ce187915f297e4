"""PCA against scikit-learn; a streamed fit equals the fit to the whole data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.datasets import load_digits, load_wine

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.configs.errors import ConfigError
from ember_ml.nn import features
from ember_ml.nn.features import NotFittedError
from tests.backends import has_dtype

WINE = load_wine().data / load_wine().data.std(0)
PERMUTED = WINE[np.random.default_rng(0).permutation(len(WINE))]
"""In another order: the same LAPACK calls would otherwise agree even if both were wrong."""


def tolerance(backend: str) -> float:
    """Return the greatest error, relative to the greatest value."""
    return 1e-10 if has_dtype(backend, "float64") else 1e-4


def check_close(got: ops.Tensor, want: np.ndarray, limit: float) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=limit * np.abs(want).max())


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("n_components", [4, 0.8, None])
def test_pca_equals_scikit_learn(backend: str, n_components: float | None, whiten: bool) -> None:
    want = decomposition.PCA(n_components, whiten=whiten, svd_solver="full").fit(WINE)
    pca = features.PCA(n_components, whiten=whiten).fit(PERMUTED)
    limit = tolerance(backend)
    check_close(pca.components, want.components_, limit)
    check_close(pca.explained_variance, want.explained_variance_, limit)
    check_close(pca.explained_variance_ratio, want.explained_variance_ratio_, limit)
    check_close(pca.singular_values, want.singular_values_, limit)
    check_close(pca(WINE), want.transform(WINE), limit)
    check_close(pca.inverse(pca(WINE)), want.inverse_transform(want.transform(WINE)), limit)
    assert pca.out_features == want.n_components_ == len(pca.feature_names)


@pytest.mark.parametrize("sizes", [(178,), (3, 175), (60, 59, 59), tuple([1] * 20 + [158])])
def test_a_streamed_fit_equals_the_batch_fit(backend: str, sizes: tuple[int, ...]) -> None:
    batches = np.split(PERMUTED, np.cumsum(sizes)[:-1])
    want = decomposition.PCA(3, svd_solver="full").fit(WINE)
    streamed = features.PCA(3).fit(iter(batches))
    check_close(streamed.components, want.components_, tolerance(backend))
    check_close(streamed.explained_variance, want.explained_variance_, tolerance(backend))


def test_partial_fit_waits_for_enough_rows(on_numpy: None) -> None:
    pca = features.PCA(3)
    pca.partial_fit(WINE[:2])
    assert not pca.is_fitted
    with pytest.raises(NotFittedError, match="PCA has seen 2 row"):
        pca(WINE)
    for row in WINE[2:]:
        pca.partial_fit(row[None])
    want = decomposition.PCA(3, svd_solver="full").fit(WINE)
    check_close(pca(WINE), want.transform(WINE), 1e-10)


@pytest.mark.parametrize("rows", [20, 40])
def test_more_features_than_rows(backend: str, rows: int) -> None:
    x = load_digits().data[:rows]
    want = decomposition.PCA(5, svd_solver="full").fit(x)
    for pca in (features.PCA(5).fit(x), features.PCA(5).fit([x[:8], x[8:]])):
        check_close(pca(x), want.transform(x), tolerance(backend))


def test_a_large_offset_does_not_spoil_float32(backend: str) -> None:
    x = np.random.default_rng(1).normal(size=(500, 4)) * [1.0, 2.0, 4.0, 8.0] + 1e4
    x = x.astype("float32")
    want = decomposition.PCA(svd_solver="full").fit(x.astype("float64"))
    for pca in (features.PCA().fit(x), features.PCA().fit(np.array_split(x, 7))):
        np.testing.assert_allclose(
            pca.explained_variance.numpy(), want.explained_variance_, rtol=1e-4
        )
        check_close(pca(x), want.transform(x.astype("float64")), 5e-4)


def test_constant_columns_and_rows_without_variance(backend: str) -> None:
    x = np.concatenate([WINE[:, :3], np.full((len(WINE), 1), 7.0)], 1)
    pca = features.PCA().fit(x)
    assert abs(pca.explained_variance.tolist()[-1]) < 1e-6
    constant = features.PCA(1).fit(np.ones((5, 2)))
    assert constant(np.ones((5, 2))).tolist() == [[0.0]] * 5
    assert constant.explained_variance_ratio.tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        ({"n_components": 5}, np.ones((9, 3)), r"n_components \(5\) must not exceed .* \(3\)"),
        ({"n_components": 3}, WINE[:2], r"at least 3 row\(s\), got 2"),
        ({}, WINE[:1], r"at least 2 row\(s\), got 1"),
        ({}, WINE[:0], r"at least 2 row\(s\), got 0"),
        ({}, np.where(np.eye(13) > 0, np.nan, 1.0), "column 0 has 1 NaN value"),
        ({}, np.where(np.eye(13)[::-1] > 0, np.inf, 1.0), "column 0 has 1 infinite value"),
        ({}, WINE[0], r"shape \(rows, features\)"),
        ({}, np.ones((3, 0)), "at least one feature"),
        ({"in_features": 4}, WINE, "expected batches with 4 features"),
    ],
)
def test_data_that_cannot_be_fitted(
    backend: str, arguments: dict, data: np.ndarray, message: str
) -> None:
    with pytest.raises((ArgumentError, ShapeError), match=message):
        features.PCA(**arguments).fit(data)


@pytest.mark.parametrize("value", [0, -1, 1.5, "all"])
def test_n_components_is_checked(value: object) -> None:
    with pytest.raises(ConfigError, match="n_components"):
        features.PCA(value)


def test_wrong_widths_are_named(backend: str) -> None:
    pca = features.PCA(2).fit(WINE)
    with pytest.raises(ShapeError, match=r"PCA: expected 13 features .* \(4, 3\)"):
        pca(np.ones((4, 3)))
    with pytest.raises(ShapeError, match="expected 2 features"):
        pca.inverse(WINE)
    with pytest.raises(ShapeError, match="expected batches with 13 features"):
        pca.partial_fit(np.ones((4, 3)))
    assert pca.fit(np.random.default_rng(0).normal(size=(9, 3))).in_features == 3
