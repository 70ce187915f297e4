"""Inference pipelines: preprocessing, model and decoding in one folder."""

from __future__ import annotations

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.data import ArrayDataset
from ember_ml.nn import layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.features import FeatureExtractor, NotFittedError
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline, Pipeline

X = np.random.default_rng(0).normal(size=(10, 4)).astype("float32")
LABELS = ("cat", "dog", "owl")


def pipeline():
    ops.random.set_seed(0)
    model = nn.Sequential(layers.Dense(4, 8), layers.Dropout(0.5), layers.Dense(8, 3))
    preprocess = Pipeline("features", [FeatureExtractor()])
    return InferencePipeline(model, preprocess, ClassLabels(LABELS))


def test_one_folder_holds_everything_for_any_backend(tmp_path, backend):
    with ember_ml.use_backend("numpy"):
        saved = pipeline()
        scores = saved.scores(X).numpy()
        saved.save(tmp_path / "run")
    loaded = InferencePipeline.load(tmp_path / "run", backend=backend)
    with ember_ml.use_backend("numpy"):
        found = loaded.scores(X)
        predictions = loaded(X)
    assert found.backend == backend
    np.testing.assert_allclose(found.numpy(), scores, rtol=1e-4, atol=1e-5)
    assert predictions == [LABELS[at] for at in scores.argmax(axis=1)]
    assert loaded.labels == LABELS


def test_predictions_in_batches_equal_those_of_the_whole():
    pipe = pipeline().train()  # dropout stays off
    whole = pipe(X)
    assert pipe.predict(X, batch_size=3) == whole
    assert pipe.predict(ArrayDataset(X, np.arange(10)), batch_size=4) == whole
    assert pipe.predict(iter(X), batch_size=4) == whole
    assert [part for batch in pipe.stream(X, 3) for part in batch] == whole
    assert pipe((X, "targets")) == (whole, "targets")


def test_without_labels_the_predictions_are_the_outputs():
    model = layers.Dense(4, 1)
    pipe = InferencePipeline(model)
    np.testing.assert_array_equal(pipe(X).numpy(), model(X).numpy())
    assert pipe.predict(X, batch_size=4) == model(X).tolist()
    assert pipe.labels is None


def test_another_checkpoint_is_refused(tmp_path):
    ember_ml.save(layers.Dense(4, 1), tmp_path / "model")
    with pytest.raises(CheckpointError, match="holds a Dense"):
        InferencePipeline.load(tmp_path / "model")


@pytest.mark.parametrize(
    "labels", [["b", "a", "b"], [3, 1, 3], np.array(["b", "a"]), [[2], [1, 2]]]
)
def test_labels_are_collected_and_sorted(labels):
    decoder = ClassLabels().fit(labels)
    flat = (
        np.concatenate([np.ravel(each) for each in labels]) if isinstance(labels, list) else labels
    )
    assert list(decoder.labels) == sorted(set(flat.tolist()))
    assert [decoder.labels[at] for at in decoder.encode(flat).tolist()] == flat.tolist()
    assert decoder.config.create().labels == decoder.labels


def test_an_unseen_label_is_named():
    decoder = ClassLabels(LABELS)
    with pytest.raises(
        ArgumentError, match=r"'cow' is not among the 3 labels .*'cat', 'dog', 'owl'"
    ):
        decoder.encode(["dog", "cow"])
    with pytest.raises(ShapeError, match=r"expected 3 scores .* got shape \(2, 2\)"):
        decoder([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(NotFittedError, match="has no labels"):
        ClassLabels()([[1.0]])
    with pytest.raises(ArgumentError, match="all strings or all integers, not int and str"):
        ClassLabels().fit([["a"], [1]])
    with pytest.raises(ArgumentError, match="no labels"):
        ClassLabels().fit([])
