"""The base class of feature extractors: data that `fit` accepts, errors, paths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import ArrayDataset, DataLoader
from ember_ml.nn import Buffer
from ember_ml.nn.features import FeatureExtractor, NotFittedError, Standardize

X = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")


class Total(FeatureExtractor):
    """Subtracts the sum of the rows."""

    needs_fit = True

    def reset(self) -> None:
        self.total = None

    @property
    def is_fitted(self) -> bool:
        return getattr(self, "total", None) is not None

    def update(self, batch: ops.Tensor) -> None:
        total = ops.sum(batch, axis=0)
        self.total = Buffer(self.total + total if self.is_fitted else total)
        self.set_in_features(batch.shape[-1])

    def extract(self, x: ops.Tensor) -> ops.Tensor:
        self.check_fitted()
        return self.as_input(x) - self.total


def batches() -> Iterator[np.ndarray]:
    yield X[:4]
    yield X[4:]


SOURCES = {
    "array": lambda: X,
    "list": X.tolist,
    "tensor": lambda: ops.array(X),
    "generator": batches,
    "list of batches": lambda: list(batches()),
    "tuples": lambda: ((x, x[:, 0]) for x in batches()),
    "dataset": lambda: ArrayDataset(X, np.arange(10)),
    "loader": lambda: DataLoader(ArrayDataset(X, np.arange(10)), batch_size=3),
}


@pytest.mark.parametrize("source", SOURCES)
def test_fit_accepts_arrays_datasets_and_batches(backend: str, source: str) -> None:
    extractor = Total().fit(SOURCES[source]())
    assert extractor.total.backend == backend
    np.testing.assert_allclose(extractor.total.tolist(), X.sum(0), rtol=1e-5, atol=1e-6)


def test_fit_does_not_move_a_loader(on_numpy: None) -> None:
    loader = DataLoader(ArrayDataset(X), batch_size=3, shuffle=True)
    before = loader.state_dict()
    Total().fit(loader)
    nn.pipeline.Pipeline("p").add_stage(Total()).fit(loader)
    assert loader.state_dict() == before


def test_partial_fit_adds_batches_and_fit_starts_again(backend: str) -> None:
    extractor = Total().partial_fit(X[:4]).partial_fit((X[4:], None))
    np.testing.assert_allclose(extractor.total.tolist(), X.sum(0), rtol=1e-5, atol=1e-6)
    extractor.fit(X[:2])
    np.testing.assert_allclose(extractor.total.tolist(), X[:2].sum(0), rtol=1e-5, atol=1e-6)
    want = X[:2] - X[:2].sum(0)
    for way in (extractor, extractor.extract, extractor.transform, Total().fit_transform):
        np.testing.assert_allclose(way(X[:2]).tolist(), want, rtol=1e-5, atol=1e-6)


def test_a_failed_fit_keeps_the_earlier_one(on_numpy: None) -> None:
    extractor = Total().fit(X)
    with pytest.raises(ValueError, match="broadcast"):
        extractor.fit([X[:4], X[:4, :2]])
    np.testing.assert_allclose(extractor.total.tolist(), X.sum(0), rtol=1e-5)
    assert extractor.in_features == 3


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], ArgumentError, "no batches"),
        ({"x": X}, ArgumentTypeError, "must be an array, a dataset or an iterable"),
        (7, ArgumentTypeError, "not 7"),
        ([{"x": X, "y": X}], ArgumentTypeError, "keys 'x', 'y'"),
    ],
)
def test_fit_refuses_other_data(
    on_numpy: None, data: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Total().fit(data)


def test_an_extractor_that_is_not_fitted_says_so(on_numpy: None) -> None:
    for use in (lambda: Total()(X), lambda: Total().feature_names):
        with pytest.raises(NotFittedError, match=r"Total is not fitted: call fit\(data\)"):
            use()
    with pytest.raises(NotImplementedError, match="Total has no inverse"):
        Total().fit(X).inverse(X)
    assert Total().fit(X).feature_names == ("x0", "x1", "x2")


def test_the_base_class_masks_its_input(backend: str) -> None:
    extractor = FeatureExtractor(3)
    assert extractor.fit(X).is_fitted
    np.testing.assert_array_equal(extractor(X).tolist(), X)
    mask = (X > 0).astype("float32")
    np.testing.assert_array_equal(extractor.extract(X, mask).tolist(), X * mask)
    with pytest.raises(ShapeError, match="expected 3 features along the last axis"):
        extractor(X[:, :2])


def test_every_path_has_the_same_objects() -> None:
    import ember_ml.data.features
    import ember_ml.features.base

    names = ember_ml.nn.features.__all__
    for path in (ember_ml.features, ember_ml.data.features):
        assert all(getattr(path, name) is getattr(ember_ml.nn.features, name) for name in names)
    assert ember_ml.features.base.FeatureExtractor is FeatureExtractor


@pytest.mark.parametrize(
    "array",
    [np.array([[1, 2]], object), np.array([["1", "a"]]), np.array([["2020-01-01"]], "M8[D]")],
    ids=str,
)
def test_arrays_without_numbers_are_refused(backend: str, array: np.ndarray) -> None:
    for convert in (ops.asarray, Standardize().fit):
        with pytest.raises(ArgumentTypeError, match="a tensor takes numbers, not"):
            convert(array)
