"""Table of the scores of 40 MLP configurations on 17 tasks, for `benchmarks/tuning.py`.

The tasks come from 14 sources that need no network: scikit-learn, statsmodels, scikit-image and two
generators. Each score is the validation accuracy of one training run with Ember on NumPy.

    python benchmarks/tuning_tasks.py [PATH]

The table is written to `benchmarks/data/tuning_scores.json`, or to PATH. A run that was stopped
continues.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before NumPy is imported
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "EMBER_ML_BACKEND": "numpy"}

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ember_ml as ember
from ember_ml.training import NonFiniteError, Trainer
from ember_ml.training.tuning import Choice, Float, Integer, SearchSpace, meta_features

PATH = Path(__file__).parent / "data" / "tuning_scores.json"
CONFIGURATIONS, EPOCHS, TRAIN, VALIDATION = 40, 15, 500, 1000
SPACE = SearchSpace(
    {
        "model.width": Integer(4, 128, log=True),
        "model.depth": Integer(1, 4),
        "model.activation": Choice(["relu", "tanh", "silu"]),
        "model.dropout": Float(0.0, 0.5),
        "trainer.optimizer": Choice(["adamw", "sgd"]),
        "trainer.learning_rate": Float(1e-4, 0.3, log=True),
        "trainer.weight_decay": Float(1e-5, 0.3, log=True),
        "batch_size": Choice([16, 64, 256]),
    }
)

Arrays = tuple[np.ndarray, np.ndarray]


class Task(NamedTuple):
    """Data of a task."""

    source: str
    load: Callable[[], Arrays]


def _sklearn(name: str) -> Arrays:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


def _parity_of_digits() -> Arrays:
    inputs, labels = _sklearn("digits")
    return inputs, labels % 2


def _diabetes(classes: int) -> Arrays:
    inputs, values = _sklearn("diabetes")
    edges = np.quantile(values, np.arange(1, classes) / classes)
    return inputs, np.searchsorted(edges, values)


def _patches(names: list[str], size: int) -> Arrays:
    """Return the gray patches of some images; the class is the image."""
    from skimage import color, data, util

    inputs, labels = [], []
    for label, name in enumerate(names):
        image = getattr(data, name)()
        gray = color.rgb2gray(image) if image.ndim == 3 else image / 255.0
        gray = gray[: len(gray) // size * size, : gray.shape[1] // size * size]
        blocks = util.view_as_blocks(gray, (size, size)).reshape(-1, size * size)
        inputs.append(blocks)
        labels += [label] * len(blocks)
    return np.concatenate(inputs), np.array(labels)


def _faces() -> Arrays:
    from skimage import data

    images = data.lfw_subset()
    return images.reshape(len(images), -1), np.arange(len(images)) < 100


def _statsmodels(name: str, target: str, drop: tuple[str, ...] = ()) -> Arrays:
    """Return the columns of a table, and whether the target is above its median."""
    import statsmodels.api as sm

    table = getattr(sm.datasets, name).load_pandas().data
    values = table[target].to_numpy(float)
    inputs = table.drop(columns=[target, *drop]).to_numpy(float)
    return inputs, values > np.median(values)


def _sunspots() -> Arrays:
    """Return windows of 12 years, and whether the next year has more sunspots."""
    import statsmodels.api as sm

    values = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
    windows = np.lib.stride_tricks.sliding_window_view(values, 13)
    return windows[:, :12], windows[:, 12] > windows[:, 11]


def _spirals() -> Arrays:
    rng = np.random.default_rng(0)
    angle = 3.5 * np.pi * np.sqrt(rng.random(1500))
    label = rng.integers(0, 2, 1500)
    turn = angle + np.pi * label
    points = angle[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return points + rng.normal(0, 0.4, points.shape), label


def _parity() -> Arrays:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (1500, 10))
    return bits + rng.normal(0, 0.1, bits.shape), bits[:, :4].sum(axis=1) % 2


TASKS = {
    "digits": Task("digits", lambda: _sklearn("digits")),
    "digits-parity": Task("digits", _parity_of_digits),
    "breast-cancer": Task("breast-cancer", lambda: _sklearn("breast_cancer")),
    "wine": Task("wine", lambda: _sklearn("wine")),
    "iris": Task("iris", lambda: _sklearn("iris")),
    "diabetes-2": Task("diabetes", lambda: _diabetes(2)),
    "diabetes-4": Task("diabetes", lambda: _diabetes(4)),
    "textures": Task("textures", lambda: _patches(["brick", "grass", "gravel"], 8)),
    "photos": Task("photos", lambda: _patches(["astronaut", "coffee", "cat", "rocket"], 12)),
    "faces": Task("faces", _faces),
    "fair-affairs": Task("fair", lambda: _statsmodels("fair", "affairs")),
    "fair-marriage": Task("fair", lambda: _statsmodels("fair", "rate_marriage", ("affairs",))),
    "randhie": Task("randhie", lambda: _statsmodels("randhie", "mdvis")),
    "anes96": Task("anes96", lambda: _statsmodels("anes96", "vote")),
    "sunspots": Task("sunspots", _sunspots),
    "spirals": Task("spirals", _spirals),
    "parity": Task("parity", _parity),
}


def split(name: str) -> tuple[Arrays, Arrays]:
    """Return standardized training and validation data of a task."""
    inputs, labels = TASKS[name].load()
    labels = np.asarray(labels).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(inputs))
    half = min(TRAIN, len(inputs) // 2)
    train, rest = order[:half], order[half : half + VALIDATION]
    mean, scale = inputs[train].mean(axis=0), inputs[train].std(axis=0)
    scaled = ((inputs - mean) / np.where(scale > 0, scale, 1.0)).astype(np.float32)
    scaled = np.clip(scaled, -10, 10)
    return (scaled[train], labels[train]), (scaled[rest], labels[rest])


def configurations() -> list[dict[str, Any]]:
    """Return the configurations, which are the same for all tasks."""
    rng = random.Random(0)
    return [SPACE.sample(rng) for _ in range(CONFIGURATIONS)]


def model_of(config: dict[str, Any], features: int, classes: int) -> ember.nn.Module:
    """Return the MLP of a configuration."""
    return ember.nn.layers.MLP(
        features,
        [config["model.width"]] * config["model.depth"],
        classes,
        activation=config["model.activation"],
        dropout=config["model.dropout"],
    )


def score(config: dict[str, Any], train: Arrays, validation: Arrays) -> float:
    """Return the validation accuracy of a configuration; 0 if it diverges."""
    ember.ops.random.set_seed(0)
    classes = int(train[1].max()) + 1
    options = {"momentum": 0.9} if config["trainer.optimizer"] == "sgd" else {}
    decay = config["trainer.weight_decay"]
    trainer = Trainer(
        model_of(config, train[0].shape[1], classes),
        "cross_entropy",
        optimizer={"type": config["trainer.optimizer"], "weight_decay": decay, **options},
        learning_rate=config["trainer.learning_rate"],
        metrics=["accuracy"],
        seed=0,
        progress=False,
    )
    try:
        trainer.fit(train, epochs=EPOCHS, batch_size=config["batch_size"])
        return float(trainer.evaluate(validation, batch_size=500)["accuracy"])
    except NonFiniteError:
        return 0.0


def describe(name: str) -> dict[str, Any]:
    """Return the scores of all configurations on a task, with its meta-features."""
    train, validation = split(name)
    np.seterr(all="ignore")  # diverging runs overflow
    scores = [score(config, train, validation) for config in configurations()]
    return {"source": TASKS[name].source, "meta": meta_features(train), "scores": scores}


def main(path: Path = PATH) -> None:
    """Compute the missing rows of the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = json.loads(path.read_text()) if path.exists() else {}
    for name in TASKS:
        if name not in table:
            table[name] = describe(name)
            path.write_text(json.dumps(table, indent=1) + "\n")
        scores = table[name]["scores"]
        print(f"{name:15} best {max(scores):.3f}, median {np.median(scores):.3f}", flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
