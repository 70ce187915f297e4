"""Training pipelines: what is fitted to which data, what is written, and how a run resumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import ember_ml
from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.configs import Config
from ember_ml.data import ArrayDataset, DataLoader, IterableDataset, random_split
from ember_ml.nn import features, layers
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.pipeline import ClassLabels, InferencePipeline, Pipeline, TrainingPipeline
from ember_ml.training import TrainerConfig
from ember_ml.training.callbacks import Callback

IRIS = load_iris()
ORDER = np.random.default_rng(0).permutation(150)
X = IRIS.data[ORDER].astype("float32")
Y = IRIS.target[ORDER].astype("int64")
NAMES = IRIS.target_names[Y]
TRAIN, VALIDATION, TEST = slice(0, 90), slice(90, 120), slice(120, 150)
MODEL = {"type": "layers/mlp", "in_features": 3, "hidden_features": [16], "out_features": 3}
TRAINER = TrainerConfig(learning_rate=0.02, metrics=["accuracy"], seed=1)


def preprocess():
    return Pipeline("iris", [features.Standardize(), features.PCA(3)])


def training(folder, **options):
    options = {"trainer": TRAINER, "epochs": 8, "batch_size": 16, "folder": folder, **options}
    return TrainingPipeline(options.pop("preprocess", preprocess()), MODEL, **options)


def fit(pipeline, **options):
    options = {"validation": (X[VALIDATION], NAMES[VALIDATION]), "progress": False, **options}
    return pipeline.fit((X[TRAIN], NAMES[TRAIN]), **options)


def test_one_folder_for_inference_on_any_backend(tmp_path, backend):
    pipeline = fit(training(tmp_path / "run"), test=(X[TEST], NAMES[TEST]))
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results == pipeline.results
    assert results["epoch"] == len(results["epochs"]) == 8
    assert results["labels"] == ["setosa", "versicolor", "virginica"]
    expected = pipeline.inference(X[TEST])
    accuracy = np.mean(np.array(expected) == NAMES[TEST])
    assert results["test"]["accuracy"] == pytest.approx(accuracy)
    assert accuracy > 0.85
    for other in ember_ml.backend.available():
        loaded = InferencePipeline.load(tmp_path / "run", backend=other)
        assert loaded(X[TEST]) == expected
        assert loaded.predict(X[TEST], batch_size=7) == expected


def test_the_preprocessing_sees_the_training_split_only(tmp_path):
    far = X[VALIDATION] + 1000.0  # it would dominate the statistics
    pipeline = fit(
        training(tmp_path / "run"),
        validation=(far, NAMES[VALIDATION]),
        test=(far, NAMES[VALIDATION]),
    )
    fitted = pipeline.inference["preprocess"]
    alone = preprocess().fit(X[TRAIN])
    np.testing.assert_array_equal(
        fitted["standardize"].mean.numpy(), alone["standardize"].mean.numpy()
    )
    np.testing.assert_array_equal(fitted["pca"].components.numpy(), alone["pca"].components.numpy())
    np.testing.assert_allclose(fitted["standardize"].mean.numpy(), X[TRAIN].mean(axis=0), rtol=1e-5)


def test_a_held_out_fraction_is_not_fitted(tmp_path):
    trainer = TRAINER.override(loss="cross_entropy")
    pipeline = training(tmp_path / "run", trainer=trainer).fit((X, Y), 0.2, progress=False)
    train, validation = random_split(ArrayDataset(X, Y), [120, 30], seed=1)
    mean = pipeline.inference["preprocess"]["standardize"].mean.numpy()
    np.testing.assert_allclose(mean, train.batch(range(120))[0].mean(axis=0), rtol=1e-5)
    scores = pipeline.inference.scores(validation.batch(range(30))[0]).numpy()
    accuracy = np.mean(scores.argmax(axis=1) == validation.batch(range(30))[1])
    assert pipeline.results["validation"]["accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("kind", ["arrays", "dataset", "loader", "stream", "dict"])
def test_every_kind_of_data(tmp_path, kind):
    x, y = X[TRAIN], Y[TRAIN]
    data = {
        "arrays": (x, y),
        "dataset": ArrayDataset(x, y),
        "loader": DataLoader(ArrayDataset(x, y), 16, shuffle=True, seed=1),
        "stream": IterableDataset(lambda: zip(x, y, strict=True)),
        "dict": {"inputs": x, "targets": y},
    }[kind]
    trainer = TRAINER.override(loss="cross_entropy")
    pipeline = training(tmp_path / "run", trainer=trainer, epochs=4).fit(data, progress=False)
    mean = pipeline.inference["preprocess"]["standardize"].mean.numpy()
    np.testing.assert_allclose(mean, x.mean(axis=0), rtol=1e-5)
    assert pipeline.inference(X[TEST]).shape == (30, 3)
    if kind in ("dataset", "loader", "dict"):
        arrays = training(tmp_path / "arrays", trainer=trainer, epochs=4).fit(
            (x, y), progress=False
        )
        np.testing.assert_allclose(
            pipeline.inference(X[TEST]).numpy(), arrays.inference(X[TEST]).numpy(), atol=1e-4
        )


def test_targets_are_decoded(tmp_path):
    targets = 100 + 50 * X[:, :1]
    pipeline = TrainingPipeline(
        features.Standardize(),
        layers.Dense(4, 1),
        features.Standardize(),
        trainer={"loss": "mse", "learning_rate": 0.05},
        epochs=60,
        folder=tmp_path / "run",
    )
    pipeline.fit((X[TRAIN], targets[TRAIN]), progress=False)
    found = InferencePipeline.load(tmp_path / "run")(X[TEST]).numpy()
    np.testing.assert_allclose(found, targets[TEST], rtol=0.05)


def test_labels_of_class_ids(tmp_path):
    pipeline = training(tmp_path / "run")
    pipeline.fit((X[TRAIN], Y[TRAIN]), labels=list(IRIS.target_names), progress=False)
    strings = fit(training(tmp_path / "strings"), validation=None)
    assert InferencePipeline.load(tmp_path / "run")(X) == strings.inference(X)


def test_the_best_weights_are_kept(tmp_path):
    trainer = TRAINER.override(learning_rate=0.5)  # the loss rises and falls
    pipeline = fit(training(tmp_path / "run", trainer=trainer, monitor="val_loss", epochs=12))
    losses = [record["val_loss"] for record in pipeline.results["epochs"]]
    assert min(losses) < losses[-1]
    assert pipeline.results["validation"]["loss"] == pytest.approx(min(losses), rel=1e-5)


def test_a_folder_with_a_run_is_not_replaced_unasked(tmp_path):
    first = fit(training(tmp_path / "run"))
    with pytest.raises(ArgumentError, match="already contains a training run; continue it"):
        fit(training(tmp_path / "run"))
    (tmp_path / "run" / "notes.txt").write_text("mine")
    again = fit(training(tmp_path / "run"), overwrite=True)
    assert again.results == first.results | {"epochs": again.results["epochs"]}
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    longer = fit(training(tmp_path / "run", epochs=10), resume=True)
    assert longer.results["epoch"] == 10


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    stages = Pipeline("p", [features.Standardize(), features.PCA(3)]).add_stage(ops.tanh, "squash")
    with pytest.raises(CheckpointError, match=r"'p': stage 'squash' \(the function tanh\)"):
        fit(training(tmp_path / "run", preprocess=stages))
    assert not any(tmp_path.iterdir())


def test_errors_name_what_is_wrong(tmp_path):
    pipeline = training(tmp_path / "run")
    with pytest.raises(ArgumentError, match="the training data is empty"):
        pipeline.fit((X[:0], Y[:0]), progress=False)
    with pytest.raises(ArgumentError, match=r"equal lengths, not \[90, 30\]"):
        pipeline.fit((X[TRAIN], Y[TEST]), progress=False)
    with pytest.raises(ArgumentError, match="'quince' is not among the 3 labels"):
        fit(pipeline, validation=(X[VALIDATION], ["quince"] * 30))
    narrow = training(tmp_path / "narrow", preprocess=features.PCA(2))
    with pytest.raises(ValueError, match="3") as caught:
        fit(narrow)
    assert "the preprocessing returns inputs of shape (16, 2)" in caught.value.__notes__[-1]
    with pytest.raises(TypeError) as caught:
        training(tmp_path / "loss").fit((X, Y), progress=False)
    assert "the trainer has no loss" in caught.value.__notes__[-1]
    with pytest.raises(ArgumentError, match="must leave examples for both"):
        fit(training(tmp_path / "other"), validation=0.001)


def test_nan_in_features(tmp_path):
    x = X[TRAIN].copy()
    x[3, 2] = np.nan
    ignoring = features.Standardize(nan="ignore")
    model = MODEL | {"in_features": 4}
    pipeline = TrainingPipeline(ignoring, model, trainer=TRAINER, folder=tmp_path / "run")
    with pytest.raises(ArgumentError, match=r"NaN or infinite values in feature\(s\) 2 of 1 of 32"):
        pipeline.fit((x, NAMES[TRAIN]), progress=False)


def test_yaml(tmp_path):
    text = f"""
type: pipelines/training
preprocess:
  type: pipelines/pipeline
  stages: {{scale: features/standardize, pca: {{type: features/pca, n_components: 3}}}}
model: {{type: layers/mlp, in_features: 3, hidden_features: [16], out_features: 3}}
target: pipelines/class_labels
trainer: {{learning_rate: 0.02, metrics: [accuracy], seed: 1}}
epochs: 8
batch_size: 16
folder: {tmp_path / "yaml"}
"""
    config = Config.from_yaml(text)
    assert Config.from_yaml(config.to_yaml()) == config
    pipeline = fit(config.create())
    again = fit(training(tmp_path / "code", target=ClassLabels()))
    np.testing.assert_array_equal(
        pipeline.inference.scores(X).numpy(), again.inference.scores(X).numpy()
    )


RUN = {"epochs": 6, "checkpoint_every": 4}


class Kill(Callback):
    """Kills the process after a step, as a crash of the machine does."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, trainer, record):
        if trainer.step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


SCRIPT = """
import sys
from tests.unit.training import test_training_pipeline as t
t.fit(t.training(sys.argv[1], **t.RUN), callbacks=[t.Kill(int(sys.argv[2]))], resume=True)
"""


def test_a_killed_run_resumes_with_the_same_result(tmp_path):
    with ember_ml.use_backend("numpy"):
        whole = fit(training(tmp_path / "whole", **RUN))
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy"}
    for step in (2, 29):  # before the first checkpoint, and after others
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "parts"), str(step)]
        killed = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not (tmp_path / "parts" / "config.json").exists()
    with ember_ml.use_backend("numpy"):
        parts = fit(training(tmp_path / "parts", **RUN), resume=True)
    assert _without_times(parts.results) == _without_times(whole.results)
    found, expected = parts.inference.scores(X), whole.inference.scores(X)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def _without_times(results):
    epochs = [{**record, "seconds": 0.0} for record in results["epochs"]]
    return {**results, "epochs": epochs}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: Pipeline("iris", [features.Normalize("minmax"), features.PCA(3)]), "stages is"),
        (lambda: Pipeline("iris", [features.Standardize(), features.PCA(3, True)]), "whiten is"),
        (lambda: None, "Pipeline instead of none"),
    ],
)
def test_a_run_does_not_resume_with_another_preprocessing(tmp_path, on_numpy, other, message):
    fit(training(tmp_path / "run", epochs=1))
    with pytest.raises(ArgumentError, match=f"another preprocessing: .*{message}"):
        fit(training(tmp_path / "run", epochs=2, preprocess=other()), resume=True)
    assert fit(training(tmp_path / "run", epochs=2), resume=True).results["epoch"] == 2


def test_a_file_and_contradictory_options_are_refused(tmp_path, on_numpy):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ArgumentError, match="file is a file; choose a folder"):
        fit(training(tmp_path / "file"))
    with pytest.raises(ArgumentError, match="resume=True or overwrite=True, not both"):
        fit(training(tmp_path / "run"), resume=True, overwrite=True)
    with pytest.raises(ArgumentError, match="validation=nan"):
        fit(training(tmp_path / "run"), validation=float("nan"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
