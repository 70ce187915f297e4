"""`ember train` on audio folders, image folders, tables and time series."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import ember_ml
from ember_ml._core.errors import ArgumentError
from ember_ml.data import audio, vision
from ember_ml.data.series import SeriesWindows
from tests.unit.cli.commands import ember, ember_json

RNG = np.random.default_rng(0)
HEAD = "trainer: {learning_rate: 1e-2, metrics: [accuracy], seed: 1}\nepochs: 6\nbatch_size: 8\n"
AUDIO = """
model: {type: sequence_classifier, layers: gru, in_features: 8, hidden_size: 8, num_classes: 2}
data:
  audio:
    path: sounds
    duration: 0.1
    features: {type: mfcc, sample_rate: 4000, n_mfcc: 8, n_mels: 16, n_fft: 128, hop: 64}
"""
IMAGES = """
model:
  type: layers/sequential
  layers:
    - {type: layers/conv2d, in_features: 1, out_features: 4, kernel_size: 3}
    - layers/global_average_pool2d
    - {type: layers/dense, in_features: 4, out_features: 2}
data: {images: {path: pictures, size: 8, mode: L}}
"""
TABLE = """
model: {type: layers/dense, in_features: 2, out_features: 2}
data: {table: {path: points.FORMAT, target: side}}
"""
SERIES = """
model: {type: sequence_regressor, layers: gru, in_features: 1, hidden_size: 8}
data: {series: {path: wave.FORMAT, inputs: value, window: 12}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text, head=HEAD):
    (folder / "run.yaml").write_text(text + head)


def test_audio_folders(folder, on_numpy):
    time = np.arange(400) / 4000
    for name, frequency in (("high", 1500), ("low", 200)):
        for at in range(12):
            wave = np.sin(2 * np.pi * frequency * time + at) + RNG.normal(0, 0.05, 400)
            audio.write(
                folder / "sounds" / name / f"{at}.wav", (0.4 * wave).astype("float32"), 4000
            )
    write(folder, AUDIO)
    found = ember_json("train", "run.yaml", "out=out", "validation=0.25")
    assert found["val_accuracy"] == 1.0
    assert json.loads((folder / "out" / "labels.json").read_text()) == ["high", "low"]
    assert ember_json("train", "run.yaml", "out=other", "validation=sounds")["val_accuracy"] == 1.0


def test_image_folders(folder, on_numpy):
    for name, level in (("bright", 200), ("dark", 20)):
        for at in range(12):
            pixels = RNG.integers(0, 40, (10 + at % 3, 9, 1)) + level
            vision.write(folder / "pictures" / name / f"{at}.png", pixels.astype("uint8"))
    write(folder, IMAGES, HEAD.replace("1e-2", "0.1").replace("epochs: 6", "epochs: 20"))
    found = ember_json("train", "run.yaml", "out=out", "validation=0.25")
    assert found["val_accuracy"] == 1.0
    model = ember_ml.load("out/last")
    assert model(np.zeros((1, 8, 8, 1), "float32")).shape == (1, 2)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_with_classes(folder, on_numpy, kind):
    x = RNG.normal(size=(60, 2))
    side = np.where(x.sum(axis=1) > 0, "right", "left")
    table = pa.table({"x": x[:, 0], "y": x[:, 1], "side": side})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, folder / "points.parquet")
    else:
        rows = [f"{a},{b},{c}" for (a, b), c in zip(x, side, strict=True)]
        (folder / "points.csv").write_text("\n".join(["x,y,side", *rows]) + "\n")
    write(folder, TABLE.replace("FORMAT", kind), HEAD.replace("1e-2", "0.1"))
    found = ember_json("train", "run.yaml", "out=out")
    assert found["val_accuracy"] > 0.8
    assert json.loads((folder / "out" / "labels.json").read_text()) == ["left", "right"]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_time_series(folder, on_numpy, kind):
    value = np.sin(np.arange(160) / 4)
    if kind == "csv":
        (folder / "wave.csv").write_text("\n".join(["value", *map(str, value)]) + "\n")
    else:
        np.savez(folder / "wave.npz", value=value[:, None].astype("float32"))
    head = "trainer: {learning_rate: 1e-2, loss: mse, seed: 1}\nepochs: 8\nbatch_size: 8\n"
    write(folder, SERIES.replace("FORMAT", kind), head)
    found = ember_json("train", "run.yaml", "out=out", "validation=0.2")
    assert found["val_loss"] < 0.3
    windows = 160 - 32 - 12  # the end is held out, so that no window overlaps it
    assert found["step"] == 8 * -(-windows // 8)


def test_errors_name_the_key_and_the_file(folder, on_numpy):
    (folder / "points.csv").write_text("x,y,side\n1,2,a\n2,3,b\n")
    write(folder, TABLE.replace("FORMAT", "csv"))
    for change, message in (
        ("data.table.path=none.csv", "data.table.path: there is no file or folder none.csv"),
        ("data.table.target=sides", "sides"),
        ("data.table.stride=2", "window: is missing"),
        ("data.table.path=run.yaml", "must be a .csv, .parquet or .npz file"),
        ("data.table.features=features/standardize", "use `ember pipeline run`"),
        ("data.table.window=9", "points.csv: 2 positions are too few for a window of 9"),
    ):
        assert message in ember("train", "run.yaml", change, "validation=0", code=2).stderr, change


def test_windows_of_a_series_against_a_loop():
    values, targets = RNG.normal(size=(30, 2)), RNG.normal(size=30)
    windows = SeriesWindows(values, targets, window=7, horizon=3, stride=4)
    starts = [at for at in range(0, 30, 4) if at + 7 + 3 <= 30]
    assert len(windows) == len(starts)
    inputs, after = windows.batch(range(len(windows)))
    for at, start in enumerate(starts):
        np.testing.assert_array_equal(inputs[at], values[start : start + 7])
        assert after[at] == targets[start + 7 + 3 - 1]
        np.testing.assert_array_equal(windows[at][0], inputs[at])
    with pytest.raises(ArgumentError, match="5 positions are too few"):
        SeriesWindows(values[:5], window=7)
