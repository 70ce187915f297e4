"""Standardize and Normalize against scikit-learn, streamed and whole."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import preprocessing
from sklearn.datasets import load_breast_cancer

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.nn import features
from ember_ml.nn.features import NotFittedError
from tests.backends import has_dtype

X = load_breast_cancer().data[:200, :12]
MISSING = X.copy()
MISSING[::7, 3] = np.nan
MISSING[5, 5] = np.nan
CASES = {
    "standardize": (lambda **k: features.Standardize(**k), preprocessing.StandardScaler),
    "minmax": (lambda **k: features.Normalize("minmax", **k), preprocessing.MinMaxScaler),
    "robust": (lambda **k: features.Normalize("robust", **k), preprocessing.RobustScaler),
}


def tolerance(backend: str) -> float:
    return 1e-10 if has_dtype(backend, "float64") else 2e-5


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("data", [X, MISSING], ids=["complete", "missing"])
def test_scaling_equals_scikit_learn(backend: str, case: str, data: np.ndarray) -> None:
    create, reference = CASES[case]
    want = reference().fit(data)
    permuted = data[np.random.default_rng(0).permutation(len(data))]
    whole = create(nan="ignore").fit(permuted)
    streamed = create(nan="ignore").fit(np.array_split(permuted, 9))
    one_by_one = create(nan="ignore")
    for batch in np.array_split(permuted, 3):
        one_by_one.partial_fit(batch)
    for scaler in (whole, streamed, one_by_one):
        got = scaler(data)
        np.testing.assert_allclose(got.numpy(), want.transform(data), atol=tolerance(backend))
        back = scaler.inverse(got).numpy()
        np.testing.assert_allclose(back, data, rtol=100 * tolerance(backend), atol=1e-3)
        assert scaler.feature_names == tuple(f"x{at}" for at in range(12))


@pytest.mark.parametrize("case", CASES)
def test_float32_equals_scikit_learn(backend: str, case: str) -> None:
    create, reference = CASES[case]
    x = X.astype("float32")
    got = create().fit(x)(x)
    assert got.dtype == ops.float32
    np.testing.assert_allclose(got.numpy(), reference().fit_transform(X), atol=2e-5)


def test_l2_equals_scikit_learn(backend: str) -> None:
    x = np.concatenate([X, np.zeros((1, 12))])
    normalize = features.Normalize("l2")
    assert normalize.is_fitted
    want = preprocessing.normalize(x)
    np.testing.assert_allclose(normalize(x).numpy(), want, atol=tolerance(backend))
    with pytest.raises(NotImplementedError, match="'l2' has no inverse"):
        normalize.inverse(x)


def test_minmax_maps_to_the_range(backend: str) -> None:
    want = preprocessing.MinMaxScaler((-2.0, 3.0)).fit(X)
    scaler = features.Normalize("minmax", range=(-2.0, 3.0)).fit(X)
    np.testing.assert_allclose(scaler(X).numpy(), want.transform(X), atol=tolerance(backend))
    np.testing.assert_allclose(scaler.inverse(scaler(X)).numpy(), X, rtol=1e-4, atol=1e-3)
    with pytest.raises(ArgumentError, match=r"range must be \(lower, upper\)"):
        features.Normalize(range=(1.0, 1.0))


def test_a_large_offset_does_not_spoil_float32(backend: str) -> None:
    x = (np.random.default_rng(0).normal(size=(20_000, 2)) + 1e4).astype("float32")
    for scaler in (features.Standardize().fit(x), features.Standardize().fit(np.split(x, 8))):
        np.testing.assert_allclose(scaler.var.numpy(), x.astype("float64").var(0), rtol=1e-4)
        assert np.abs(scaler(x).numpy().mean(0)).max() < 2e-3


@pytest.mark.parametrize("case", CASES)
def test_constant_columns_one_row_and_other_dtypes(backend: str, case: str) -> None:
    create, _ = CASES[case]
    x = np.full((50, 3), [0.1, 1e5, -3.0])
    x[:, 2] = np.arange(50)
    got = create().fit(x)(x).numpy()
    assert (got[:, :2] == got[0, :2]).all()
    assert np.abs(got[:, :2]).max() < 1e-6
    assert create().fit(x[:1])(x[:1]).tolist() == [[0.0, 0.0, 0.0]]
    integers = create().fit(x.astype("int64"))(x.astype("int64"))
    assert integers.dtype == ops.float32
    half = create().fit(ops.array(x[:, 2:], dtype="float16"))
    assert half.scale.dtype == ops.float32


def test_leading_axes_are_rows(backend: str) -> None:
    x = X[:24].reshape(2, 3, 4, 12)
    scaler = features.Standardize().fit(x)
    want = preprocessing.StandardScaler().fit_transform(X[:24]).reshape(x.shape)
    np.testing.assert_allclose(scaler(x).numpy(), want, atol=tolerance(backend))
    np.testing.assert_allclose(scaler(x[0, 0, 0]).numpy(), want[0, 0, 0], atol=tolerance(backend))


def test_missing_values_become_the_mean(backend: str) -> None:
    scaler = features.Standardize(nan="mean").fit(MISSING)
    want = np.nan_to_num(preprocessing.StandardScaler().fit_transform(MISSING))
    np.testing.assert_allclose(scaler(MISSING).numpy(), want, atol=tolerance(backend))


@pytest.mark.parametrize("case", CASES)
def test_a_column_without_values_stays_nan(backend: str, case: str) -> None:
    x = np.array([[np.nan, 1.0], [np.nan, 3.0]])
    scaler = CASES[case][0](nan="ignore").fit(x)
    got = scaler(x).numpy()
    assert np.isnan(got[:, 0]).all()
    assert np.isfinite(got[:, 1]).all()
    got = scaler.partial_fit([[5.0, 2.0]])([[5.0, 2.0]]).numpy()
    assert got[0, 0] == 0.0


@pytest.mark.parametrize("case", CASES)
def test_nan_and_infinity_are_errors(backend: str, case: str) -> None:
    create, _ = CASES[case]
    with pytest.raises(ArgumentError, match=r"column 3 has 29 NaN value\(s\).*nan='ignore'"):
        create().fit(MISSING)
    infinite = np.where(np.arange(12) == 4, np.inf, X)
    for nan in ("raise", "ignore"):
        with pytest.raises(ArgumentError, match="column 4 has 200 infinite"):
            create(nan=nan).fit(infinite)
    scaler = create().fit(X)
    for bad in (MISSING, infinite):
        with pytest.raises(ArgumentError, match=r"column [34] has"):
            scaler(bad)
    with pytest.raises(ArgumentError, match="column 3 has"):
        scaler.fit(MISSING)
    assert np.isfinite(scaler(X).numpy()).all()  # the failed fit changed nothing


@pytest.mark.parametrize("case", CASES)
def test_wrong_input_is_named(backend: str, case: str) -> None:
    create, _ = CASES[case]
    with pytest.raises(NotFittedError, match="is not fitted"):
        create()(X)
    with pytest.raises(NotFittedError, match="is not fitted"):
        create(in_features=12)(X)
    with pytest.raises(ArgumentError, match=r"at least 1 row\(s\), got 0"):
        create().fit(X[:0])
    with pytest.raises(ShapeError, match=r"shape \(rows, features\)"):
        create().fit(X[0])
    with pytest.raises(ShapeError, match="expected 12 features"):
        create().fit(X)(X[:, :3])
    with pytest.raises(ShapeError, match="expected batches with 12 features"):
        create().partial_fit(X).partial_fit(X[:, :3])
    with pytest.raises(ArgumentTypeError, match="must be real"):
        create().fit(ops.array([[1j, 2j]]))


def test_squares_that_overflow_are_an_error(backend: str) -> None:
    x = np.array([[1e30], [-1e30]], dtype="float32")
    with pytest.raises(ArgumentError, match="overflow float32"):
        features.Standardize().fit(x)


def test_robust_scaling_of_many_rows_uses_a_sample(backend: str) -> None:
    x = np.random.default_rng(0).gamma(2.0, size=(3000, 2))
    want = preprocessing.RobustScaler().fit(x)
    whole = features.Normalize("robust", sample_size=500).fit(x)
    streamed = features.Normalize("robust", sample_size=500).fit(np.array_split(x, 13))
    assert whole.center.tolist() == streamed.center.tolist()
    assert whole.scale.tolist() == streamed.scale.tolist()
    np.testing.assert_allclose(whole.center.numpy(), want.center_, rtol=0.15)
    np.testing.assert_allclose(whole.scale.numpy(), want.scale_, rtol=0.15)
