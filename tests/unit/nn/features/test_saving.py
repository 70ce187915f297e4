"""Every registered extractor: saved, loaded on another backend, moved, copied, streamed on."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn import features
from tests.backends import has_dtype

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5)) @ RNG.normal(size=(5, 5)) + 1.0
FITTED: dict[str, tuple[features.FeatureExtractor, Any]] = {
    "extractor": (features.FeatureExtractor(5), X),
    "pca": (features.PCA(3), X),
    "pca by share": (features.PCA(0.9, whiten=True), X),
    "standardize": (features.Standardize(), X),
    "minmax": (features.Normalize("minmax", range=(-1.0, 1.0)), X),
    "l2": (features.Normalize("l2"), X),
    "robust": (features.Normalize("robust"), X),
    "one_hot": (features.OneHot(), np.array([[3, 1], [4, 1], [3, 2]])),
    "one_hot of strings": (features.OneHot(unknown="ignore"), [["a", 1], ["b", 2]]),
    "time series": (features.TimeSeriesFeatures(["std", "acf", "spectral"], lags=2), X),
    "windows": (features.TimeSeriesFeatures(window=3, hop=1), X),
    "scatter": (features.ScatterFeatures(("mean", "max")), (X, np.arange(40) // 7)),
}


def apply(extractor: features.FeatureExtractor, data: Any) -> Any:
    return extractor(*data) if isinstance(data, tuple) else extractor(data)


@pytest.mark.parametrize("name", FITTED)
def test_fitted_on_one_backend_used_on_another(name: str, backend: str, tmp_path: Path) -> None:
    created, data = FITTED[name]
    for source in available():
        with use_backend(source):
            fitted = copy.deepcopy(created).fit(data)
            want = apply(fitted, data).numpy()
            ember_ml.save(fitted, tmp_path / source)
        loaded = ember_ml.load(tmp_path / source, backend=backend)
        assert loaded.config == fitted.config
        assert loaded.is_fitted
        got = apply(loaded, data)
        assert got.backend == backend
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=2e-5)
        if hasattr(fitted, "in_features") and fitted.in_features is not None:
            assert loaded.feature_names == fitted.feature_names
        moved = copy.deepcopy(fitted)
        if not has_dtype(backend, "float64"):
            moved.to("float32")
        moved.to_backend(backend)
        np.testing.assert_allclose(apply(moved, data).numpy(), want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", FITTED)
def test_unfitted_extractors_are_saved_too(name: str, on_numpy: None, tmp_path: Path) -> None:
    created, data = FITTED[name]
    ember_ml.save(created, tmp_path / "saved")
    loaded = ember_ml.load(tmp_path / "saved")
    assert loaded.is_fitted == created.is_fitted
    np.testing.assert_array_equal(
        apply(loaded.fit(data), data).numpy(),
        apply(copy.deepcopy(created).fit(data), data).numpy(),
    )
    assert Config.from_yaml(created.config.to_yaml()) == created.config


@pytest.mark.parametrize("name", ["pca", "standardize", "minmax"])
def test_a_loaded_extractor_continues_the_stream(name: str, backend: str, tmp_path: Path) -> None:
    created, data = FITTED[name]
    whole = copy.deepcopy(created).fit(data)
    ember_ml.save(copy.deepcopy(created).fit(data[:25]), tmp_path / "half")
    loaded = ember_ml.load(tmp_path / "half").partial_fit(data[25:])
    np.testing.assert_allclose(
        apply(loaded, data).numpy(), apply(whole, data).numpy(), rtol=1e-4, atol=2e-5
    )


def test_quantiles_cannot_continue_after_loading(on_numpy: None, tmp_path: Path) -> None:
    ember_ml.save(features.Normalize("robust").fit(X), tmp_path / "saved")
    with pytest.raises(ValueError, match="rows from which 'robust' computes quantiles"):
        ember_ml.load(tmp_path / "saved").partial_fit(X)


def test_every_registered_extractor_is_in_the_table() -> None:
    """Extractors of spectra and of text have tests of their own."""
    named = {type(extractor) for extractor, _ in FITTED.values()}
    own = {
        "base",
        "principal_components",
        "scaling",
        "normalization",
        "encoding",
        "scattering",
        "timeseries",
    }
    for entry in ember_ml.registry.available("features"):
        if entry.target.__module__.rpartition(".")[2] in own:
            assert entry.target in named, entry.name


def test_a_stream_needs_constant_memory(on_numpy: None) -> None:
    for extractor in (features.PCA(2), features.Standardize(), features.Normalize()):
        sizes = set()
        for _ in range(3):
            extractor.partial_fit(RNG.normal(size=(100, 5)))
            sizes.add(sum(buffer.size for buffer in extractor.buffers()))
        assert len(sizes) == 1
    robust = features.Normalize("robust", sample_size=50)
    for _ in range(9):
        robust.partial_fit(RNG.normal(size=(40, 5)))
        assert sum(len(rows) for rows in robust._sample._rows) <= 140
