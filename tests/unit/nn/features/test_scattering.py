"""Features of groups against SciPy's labeled statistics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml.nn import features

X = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
INDEX = np.random.default_rng(1).integers(0, 5, 20)
REFERENCES = {
    "add": ndimage.sum_labels,
    "mean": ndimage.mean,
    "max": ndimage.maximum,
    "min": ndimage.minimum,
}


def test_groups_equal_the_reference(backend: str) -> None:
    extractor = features.ScatterFeatures(tuple(REFERENCES), in_features=3)
    got = extractor(X, INDEX).numpy()
    groups = np.arange(5)
    want = [
        np.stack([reference(column, INDEX, groups) for column in X.T], 1)
        for reference in REFERENCES.values()
    ]
    np.testing.assert_allclose(got, np.concatenate(want, 1), rtol=1e-5, atol=1e-6)
    assert extractor.feature_names[:4] == ("add(x0)", "add(x1)", "add(x2)", "mean(x0)")
    assert extractor.fit(X) is extractor


def test_empty_groups_and_inputs(backend: str) -> None:
    extractor = features.ScatterFeatures("max", dim_size=4)
    assert extractor([[1.0], [-2.0]], [0, 2]).tolist() == [[1.0], [0.0], [-2.0], [0.0]]
    empty = features.ScatterFeatures()(ops.zeros((0, 2)), ops.zeros(0, dtype="int64"))
    assert empty.shape == (0, 2)
    for x, index in ((X, INDEX[:5]), (X[0], INDEX[:3])):
        with pytest.raises(ShapeError, match=r"an index of shape \(rows,\)"):
            extractor(x, index)


def test_the_function_is_the_op() -> None:
    assert features.scatter is ops.scatter
