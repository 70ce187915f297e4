"""Pipelines of features against scikit-learn's, on every backend."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import ember_ml
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import features
from ember_ml.nn.pipeline import FeaturePipeline, Pipeline

WINE = load_wine().data[np.random.default_rng(0).permutation(178)]
CANCER = load_breast_cancer().data
CASES = {
    "standardize pca": (
        [features.Standardize, lambda: features.PCA(5)],
        [StandardScaler(), PCA(5, svd_solver="full")],
    ),
    "minmax standardize whitened pca": (
        [
            lambda: features.Normalize("minmax"),
            features.Standardize,
            lambda: features.PCA(4, whiten=True),
        ],
        [MinMaxScaler(), StandardScaler(), PCA(4, svd_solver="full", whiten=True)],
    ),
    "standardize l2": (
        [features.Standardize, lambda: features.Normalize("l2")],
        [StandardScaler(), Normalizer()],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("data", [WINE, CANCER], ids=["wine", "cancer"])
def test_the_results_equal_those_of_scikit_learn(case, data, backend):
    own, theirs = CASES[case]
    expected = make_pipeline(*theirs).fit_transform(data)
    pipeline = Pipeline(case, [stage() for stage in own])
    found = pipeline.fit(data).run(data).numpy()
    _assert_equal_up_to_signs(found, expected, 1e-9 if found.dtype == np.float64 else 2e-3)


def _assert_equal_up_to_signs(found, expected, tolerance):
    signs = np.sign(np.sum(found * expected, axis=0))  # scikit-learn has other signs
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found * signs / scale, expected / scale, atol=tolerance)


def test_streamed_fits_equal_the_whole_fit(backend):
    data = WINE.astype("float32")
    stages = CASES["standardize pca"][0]
    whole = Pipeline("whole", [stage() for stage in stages]).fit(data)
    for source in (
        [data[:1], data[1:100], data[100:]],
        ArrayDataset(data, np.zeros(178)),
        DataLoader(ArrayDataset(data), 50),
    ):
        streamed = Pipeline("streamed", [stage() for stage in stages]).fit(source)
        np.testing.assert_allclose(
            streamed.run(data).numpy(), whole.run(data).numpy(), rtol=1e-3, atol=1e-3
        )


@pytest.mark.parametrize("case", CASES)
def test_fitted_on_numpy_and_loaded_on_any_backend(case, backend, tmp_path):
    data = WINE.astype("float32")
    with ember_ml.use_backend("numpy"):
        pipeline = FeaturePipeline("wine", [stage() for stage in CASES[case][0]]).fit(data)
        expected = pipeline.run(data)
        ember_ml.save(pipeline, tmp_path / "wine")
        restored = None if "l2" in case else pipeline.inverse(expected).numpy()
    loaded = ember_ml.load(tmp_path / "wine", backend=backend)
    assert isinstance(loaded, FeaturePipeline)
    found = loaded.run(data)
    assert found.backend == backend
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)
    if restored is not None:
        assert loaded.feature_names == pipeline.feature_names
        np.testing.assert_allclose(loaded.inverse(found).numpy(), restored, rtol=1e-3, atol=1e-3)
    refitted = loaded.fit(data[:100])  # a loaded pipeline can be fitted again
    fresh = FeaturePipeline("wine", [stage() for stage in CASES[case][0]]).fit(data[:100])
    np.testing.assert_allclose(
        refitted.run(data).numpy(), fresh.run(data).numpy(), rtol=1e-3, atol=1e-3
    )


def test_worker_processes_run_the_pipeline():
    data = WINE.astype("float32")
    with ember_ml.use_backend("numpy"):
        pipeline = Pipeline("wine", [features.Standardize(), features.PCA(2)]).fit(data)
        mapped = ArrayDataset(data).map(pipeline, batched=True)
        loader = DataLoader(mapped, 60, num_workers=1, worker_type="process")
        found = np.concatenate([batch.numpy() for batch in loader])
        np.testing.assert_allclose(found, pipeline.run(data).numpy(), rtol=1e-4, atol=1e-4)
