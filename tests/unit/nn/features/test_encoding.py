"""OneHot against scikit-learn: integers, strings, unknown categories."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.nn import features
from ember_ml.nn.features import NotFittedError, UnknownCategoryError

RNG = np.random.default_rng(0)
INTEGERS = np.stack([RNG.integers(-3, 4, 30), RNG.choice([7, 100, 2**40], 30)], 1)
STRINGS = np.stack([RNG.choice(["red", "green", "blue"], 30), RNG.choice(["é", "", "z"], 30)], 1)
DATA = {
    "integers": INTEGERS,
    "int32": INTEGERS[:, :1].astype("int32"),
    "bool": INTEGERS[:, :1] > 0,
    "strings": STRINGS,
    "objects": STRINGS.astype(object),
}


@pytest.mark.parametrize("name", DATA)
def test_encoding_equals_scikit_learn(backend: str, name: str) -> None:
    x = DATA[name]
    want = OneHotEncoder(sparse_output=False).fit(x)
    whole, streamed = features.OneHot().fit(x), features.OneHot().fit(np.array_split(x, 4))
    for encoder in (whole, streamed, features.OneHot().fit(x.tolist())):
        for given in (x, x.tolist()):
            got = encoder(given)
            assert (got.backend, got.dtype) == (backend, ops.float32)
            np.testing.assert_array_equal(got.numpy(), want.transform(x))
        assert len(encoder.feature_names) == want.transform(x).shape[1]
        back = encoder.inverse(encoder(x))
        assert back.tolist() == x.tolist() if x.dtype.kind in "ib" else back == x.tolist()
        assert encoder.config.categories == encoder.categories


def test_vectors_and_leading_axes(backend: str) -> None:
    encoder = features.OneHot().fit([2, 5, 2])
    assert encoder.categories == ((2, 5),)
    assert encoder([5, 2]).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    x = ops.array(INTEGERS.reshape(3, 10, 2))
    encoder = features.OneHot().fit(x)
    flat = encoder(INTEGERS).numpy()
    np.testing.assert_array_equal(encoder(x).numpy(), flat.reshape(3, 10, -1))
    assert encoder.inverse(encoder(x)).tolist() == x.tolist()


def test_mixed_columns(backend: str) -> None:
    encoder = features.OneHot().fit([["a", 1], ["b", 2], [1, 1]])
    assert encoder.categories == ((1, "a", "b"), (1, 2))
    assert encoder.feature_names == ("x0=1", "x0=a", "x0=b", "x1=1", "x1=2")
    assert encoder([["b", 1]]).tolist() == [[0.0, 0.0, 1.0, 1.0, 0.0]]
    assert encoder(ops.array([[1, 2]])).tolist() == [[1.0, 0.0, 0.0, 0.0, 1.0]]
    assert encoder.inverse([[0.0, 0.0, 1.0, 0.0, 0.0]]) == [["b", None]]


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (STRINGS, [["red", "z"], ["pink", "z"]], "column 0 has the unknown category 'pink'"),
        (INTEGERS, np.array([[0, 7], [0, 8]]), "column 1 has the unknown category 8; known are 7"),
        (INTEGERS, [["0", 7]], "column 0 has the unknown category '0'"),
        (STRINGS[:, :1], np.array([[3]]), "column 0 has the unknown category 3"),
    ],
)
def test_unknown_categories(backend: str, fitted: object, given: object, message: str) -> None:
    with pytest.raises(UnknownCategoryError, match=message):
        features.OneHot().fit(fitted)(given)
    got = features.OneHot(unknown="ignore").fit(fitted)(given)
    assert 0 <= ops.sum(got).tolist() < len(given) * fitted.shape[1]


def test_bad_input_is_named(backend: str) -> None:
    encoder = features.OneHot()
    with pytest.raises(NotFittedError, match="OneHot is not fitted"):
        encoder(INTEGERS)
    for data, message in (
        (INTEGERS.astype("float32"), "got dtype float32; convert them"),
        ([["a"], [None]], "column 0 has the value None"),
        ([["a"], [float("nan")]], "column 0 has the value nan"),
    ):
        with pytest.raises(ArgumentTypeError, match=message):
            encoder.fit(data)
    for data in (INTEGERS[:0], STRINGS[:0]):
        with pytest.raises(ArgumentError, match="needs at least 1 row"):
            encoder.fit(data)
        assert not encoder.is_fitted
    with pytest.raises(ShapeError, match="equal numbers of columns"):
        encoder.fit([["a"], ["b", "c"]])
    encoder.fit(INTEGERS)
    with pytest.raises(ShapeError, match=r"expected 2 column\(s\), got 1"):
        encoder([1, 2])
    with pytest.raises(ShapeError, match=r"expected 2 column\(s\), got 3"):
        encoder.partial_fit([[1, 2, 3]])
    with pytest.raises(ArgumentError, match="a row has no category"):
        encoder.inverse(np.zeros((1, len(encoder.feature_names)), "float32"))


def test_one_hot_function(backend: str) -> None:
    np.testing.assert_array_equal(features.one_hot([2, 0]).numpy(), np.eye(3)[[2, 0]])
    np.testing.assert_array_equal(features.one_hot([1], 4, dtype="int32").numpy(), [[0, 1, 0, 0]])
    assert features.one_hot(ops.zeros(0, dtype="int64")).shape == (0, 0)
    with pytest.raises(ArgumentError, match="must not be negative, got -1"):
        features.one_hot([0, -1])
