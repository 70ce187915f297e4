"""`ember pipeline run`."""

from __future__ import annotations

import json

import numpy as np
import pytest
import safetensors.numpy
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ember_ml
from ember_ml.nn.pipeline import InferencePipeline
from tests.unit.cli.commands import ember, ember_json

IRIS = load_iris()
X, NAMES = IRIS.data, IRIS.target_names[IRIS.target]
TRAINING = """
pipeline:
  type: training
  preprocess:
    type: pipelines/pipeline
    stages: {scale: features/standardize, pca: {type: features/pca, n_components: 3}}
  model: {type: layers/mlp, in_features: 3, hidden_features: [16], out_features: 3}
  trainer: {learning_rate: 0.02, metrics: [accuracy], seed: 1}
  epochs: 12
  batch_size: 16
data: {table: {path: iris.csv, target: species}}
validation: 0.2
out: run
"""
FEATURES = """
pipeline:
  type: feature
  stages: {scale: features/standardize, pca: {type: features/pca, n_components: 2}}
data: {arrays: {path: iris.npz, targets: null}}
batch_size: 40
out: features
"""
SAVED = """
pipeline: run
data: {arrays: {path: iris.npz, targets: null}}
out: predictions
"""
TEXT = """
pipeline:
  type: training
  preprocess: {type: pipelines/text, kind: char, vocab_size: 40, output: counts}
  model: {type: layers/dense, in_features: 40, out_features: 2}
  trainer: {learning_rate: 0.1, metrics: [accuracy]}
  epochs: 15
data: {table: {path: texts.csv, inputs: text, target: language}}
validation: 0
out: text
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    order = np.random.default_rng(0).permutation(150)
    rows = [",".join([*map(str, X[at]), NAMES[at]]) for at in order]
    (tmp_path / "iris.csv").write_text("\n".join(["a,b,c,d,species", *rows]) + "\n")
    np.savez(tmp_path / "iris.npz", inputs=X.astype("float32"))
    lines = ["aab,x", "bba,x", "zzy,y", "yzy,y"] * 4
    (tmp_path / "texts.csv").write_text("\n".join(["text,language", *lines]) + "\n")
    for name, text in (
        ("train", TRAINING),
        ("features", FEATURES),
        ("saved", SAVED),
        ("text", TEXT),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_a_training_pipeline_and_its_predictions(folder, on_numpy):
    found = ember_json("pipeline", "run", "train.yaml")
    assert found["epoch"] == 12
    assert found["val_accuracy"] > 0.8
    saved = ember_json("pipeline", "run", "saved.yaml")
    predictions = json.loads((folder / saved["predictions"]).read_text())
    assert predictions == InferencePipeline.load("run")(X.astype("float32"))
    assert np.mean(np.array(predictions) == NAMES) > 0.85
    again = ember("pipeline", "run", "train.yaml", code=2)
    assert "already contains a training run" in again.stderr
    longer = ember_json("pipeline", "run", "train.yaml", "pipeline.epochs=14", "--resume")
    assert longer["epoch"] == 14


def test_a_feature_pipeline_is_fitted_saved_and_run(folder, backend):
    found = ember_json("pipeline", "run", "features.yaml")
    assert found["examples"] == 150
    assert found["shape"] == [150, 2]
    written = safetensors.numpy.load_file(found["outputs"])["outputs"]
    expected = make_pipeline(StandardScaler(), PCA(2)).fit_transform(X)
    np.testing.assert_allclose(np.abs(written), np.abs(expected), atol=1e-3)
    loaded = ember_ml.load("features")
    np.testing.assert_allclose(loaded.run(X.astype("float32")).numpy(), written, atol=1e-4)


def test_a_text_classifier_trains_its_tokenizer(folder, on_numpy):
    ember("pipeline", "run", "text.yaml")
    loaded = InferencePipeline.load("text")
    assert loaded(["ab", "zy"]) == ["x", "y"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("pipeline.type=trainin", "did you mean 'training'"),
        ("data.table.path=missing.csv", "no file or folder missing.csv"),
        ("data.table.target=kind", "kind"),
        ("pipeline.model.in_features=2", "the preprocessing returns inputs of shape"),
        ("data.tabel={}", "tabel"),
    ],
)
def test_errors_name_the_place(folder, on_numpy, change, message):
    assert message in ember("pipeline", "run", "train.yaml", change, code=2).stderr


SELF_TRAINING = """
pipeline:
  type: self-training
  model: {type: layers/mlp, in_features: 4, hidden_features: [16], out_features: 3}
  preprocess: features/standardize
  select: {type: threshold, threshold: 0.7}
  augment: {type: jitter, std: 0.05}
  rounds: 2
  rollback: true
  trainer: {learning_rate: 0.05, seed: 1}
  steps: 20
  batch_size: 8
data: {arrays: {path: few.npz}}
validation: held_out.npz
out: run
"""


def test_self_training(tmp_path, monkeypatch, on_numpy):
    """Unlabeled examples are those with negative targets, or another file."""
    monkeypatch.chdir(tmp_path)
    y = np.where(np.arange(150) % 6, -1, IRIS.target)
    x = X.astype("float32")
    np.savez("few.npz", inputs=x[::2], targets=y[::2])
    np.savez("held_out.npz", inputs=x[1::4], targets=IRIS.target[1::4])
    (tmp_path / "few.yaml").write_text(SELF_TRAINING)
    found = ember_json("pipeline", "run", "few.yaml")
    assert found["val_accuracy"] >= found["supervised"] > 0.6
    history = json.loads((tmp_path / "run" / "history.json").read_text())
    assert history[1]["selected"] > 0
    assert "already contains" in ember("pipeline", "run", "few.yaml", code=2).stderr
    np.savez("labels.npz", inputs=x[::6], targets=IRIS.target[::6])
    np.savez("pool.npz", inputs=x[3::6])
    changes = ["data.arrays.path=labels.npz", "unlabeled=pool.npz", "out=other", "validation=0.2"]
    assert ember_json("pipeline", "run", "few.yaml", *changes)["pipeline"] == "other"
    changes = ["data.arrays.path=labels.npz", "out=none"]
    refused = ember("pipeline", "run", "few.yaml", *changes, code=2)
    assert "no target of the data is negative" in refused.stderr
