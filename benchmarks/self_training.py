"""Self-training against the supervised model and scikit-learn, on the same splits, in one run.

- digits: scikit-learn's digits, 50 labels (5 of each class), 450 test examples. An MLP with
  adaptive thresholds; the peer is `SelfTrainingClassifier` with logistic regression and threshold
  0.75 on the unscaled pixels, where it is best.
- fixmatch: the same images and labels, a small convolutional network, shifts and consistency
  training.
- miscalibrated: an MLP that a high learning rate makes overconfident, every confident prediction
  selected. 100 further labels are the validation data. "naive" ignores it, "rollback" uses it.
- series: cylinder-bell-funnel, generated time series of 128 values, 15 labels, 300 test series, an
  MLP, shifts in time and consistency training.
- vibration: the generated machine vibrations of `examples/time_series.py`, cut to 120 values, 40
  labels, 400 test series. Statistical features and an MLP; rounds and consistency training. The
  classes overlap, and self-training does not help.

The first backend runs all seeds, the others two. "supervised" is round 0 of the same run: the same
model, initial weights, augmentation and number of steps, trained on the labels only.

    python benchmarks/self_training.py [digits | fixmatch | miscalibrated | series |
        vibration ...]
        [--seeds 10] [--backends torch,numpy,mlx] [--plots docs/images]
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before NumPy is imported
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier

import ember_ml
from ember_ml import nn, ops
from ember_ml.data import augmentation
from ember_ml.nn.features import Standardize, TimeSeriesFeatures
from ember_ml.nn.pipeline import Pipeline, SelfTrainingPipeline
from ember_ml.training.pipelines import SelfTrainingHistory
from ember_ml.training.selection import Adaptive, Threshold

OTHERS = 2
"""Number of seeds on the backends after the first."""
STRONG = augmentation.Compose(
    [
        augmentation.Shift(1),
        augmentation.Scale(0.2),
        augmentation.Jitter(0.15),
        augmentation.Erase(0.3),
    ]
)
Split = dict[str, tuple[np.ndarray, np.ndarray]]


def digits(seed: int) -> Split:
    """Return 50 labeled, 100 validation, 450 test and the remaining digits."""
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(x))
    return _parts(x, y, order, per_class=5, test=450, validation=100)


def series(seed: int) -> Split:
    """Return cylinder-bell-funnel series: a plateau, a rise or a fall at a random place."""
    rng = np.random.default_rng([seed, 7])
    y = np.arange(1200) % 3
    at = np.arange(128)
    start, length = rng.integers(16, 33, 1200), rng.integers(32, 97, 1200)
    inside = (at >= start[:, None]) & (at < (start + length)[:, None])
    ramp = (at - start[:, None]) / length[:, None]
    shape = np.choose(y[:, None], [np.ones_like(ramp), ramp, 1 - ramp])
    height = 6 + rng.standard_normal((1200, 1))
    x = inside * height * shape + rng.standard_normal((1200, 128))
    return _parts(x.astype(np.float32) / 4, y, rng.permutation(1200), 5, 300, 60)


def _parts(
    x: np.ndarray, y: np.ndarray, order: np.ndarray, per_class: int, test: int, validation: int
) -> Split:
    held_out, rest = order[:test], order[test:]
    labeled = np.concatenate([rest[y[rest] == c][:per_class] for c in np.unique(y)])
    pool = rest[~np.isin(rest, labeled)]
    parts = {"labeled": labeled, "test": held_out, "validation": pool[:validation]}
    return {name: (x[at], y[at]) for name, at in {**parts, "unlabeled": pool[validation:]}.items()}


def mlp(inputs: int, classes: int) -> nn.Module:
    """Return a network with one hidden layer."""
    return nn.layers.MLP(inputs, [64], classes)


def conv_net() -> nn.Module:
    """Return a small convolutional network for images of 8 x 8 pixels."""
    layers = nn.layers
    return nn.Sequential(
        layers.Conv2D(1, 16, 3, activation="relu"),
        layers.MaxPool2D(2),
        layers.Conv2D(16, 32, 3, activation="relu"),
        layers.MaxPool2D(2),
        layers.Conv2D(32, 64, 3, activation="relu"),
        layers.GlobalAveragePool2D(),
        layers.Dense(64, 10),
    )


def train(
    seed: int,
    split: Split,
    model: Callable[[], nn.Module],
    *,
    validate: bool = False,
    **options: Any,
) -> SelfTrainingHistory:
    """Run a pipeline, and return its history."""
    ops.random.set_seed(seed)
    trainer = {"learning_rate": 3e-3, "seed": seed, **options.pop("trainer", {})}
    options = {"steps": 200, "checkpoint_every": 10_000, "trainer": trainer, **options}
    with tempfile.TemporaryDirectory() as folder:
        pipeline = SelfTrainingPipeline(model(), folder=folder, **options)
        validation = split["validation"] if validate else None
        pipeline.fit(
            split["labeled"], split["unlabeled"], validation, test=split["test"], progress=False
        )
    assert pipeline.history is not None
    return pipeline.history


def digits_run(seed: int) -> dict[str, SelfTrainingHistory]:
    """Return the history of an MLP with adaptive thresholds."""
    return {"adaptive": train(seed, digits(seed), lambda: mlp(64, 10), select=Adaptive())}


def fixmatch_run(seed: int) -> dict[str, SelfTrainingHistory]:
    """Return the history of consistency training with shifts."""
    split = {name: (x.reshape(-1, 8, 8, 1), y) for name, (x, y) in digits(seed).items()}
    history = train(
        seed,
        split,
        conv_net,
        mode="consistency",
        select=Adaptive(0.99),
        augment=augmentation.Shift(1),
        strong=STRONG,
        rounds=1,
        steps=800,
        batch_size=16,
        warm_start=True,
        trainer={"learning_rate": 5e-3, "schedule": "cosine"},
    )
    return {"fixmatch": history}


def miscalibrated_run(seed: int) -> dict[str, SelfTrainingHistory]:
    """Return the histories of an overconfident MLP without and with rollback."""
    options: dict[str, Any] = {"select": Threshold(0.9), "trainer": {"learning_rate": 0.1}}
    split = digits(seed)
    return {
        name: train(
            seed, split, lambda: mlp(64, 10), validate=True, rounds=5, rollback=rolls, **options
        )
        for name, rolls in (("naive", False), ("rollback", True))
    }


def series_run(seed: int) -> dict[str, SelfTrainingHistory]:
    """Return the history of consistency training on time series, which are shifted in time."""
    shift = augmentation.TimeShift(0.1)
    history = train(
        seed,
        series(seed),
        lambda: mlp(128, 3),
        mode="consistency",
        select=Adaptive(0.99),
        augment=shift,
        strong=augmentation.Compose([shift, augmentation.Jitter(0.25), augmentation.Scale(0.1)]),
        rounds=1,
        batch_size=15,
        warm_start=True,
    )
    return {"fixmatch": history}


def vibration(seed: int) -> Split:
    """Return vibrations of machines: 40 labeled, 800 unlabeled, 60 validation, 400 test series."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from time_series import Machines

    sizes = {"labeled": 40, "unlabeled": 800, "validation": 60, "test": 400}
    parts = {}
    for at, (name, count) in enumerate(sizes.items()):
        data = Machines(count, seed=10 * seed + at, longer=3)
        examples = [data[index] for index in range(count)]
        parts[name] = (
            np.stack([values[:120] for values, _ in examples]),
            np.array([label for _, label in examples]),
        )
    return parts


def vibration_run(seed: int) -> dict[str, SelfTrainingHistory]:
    """Return the histories of rounds and of consistency training on features of vibrations."""
    names = ("std", "min", "max", "skew", "kurtosis", "mean_abs_change", "acf", "spectral")
    shift, split = augmentation.TimeShift(0.5), vibration(seed)
    strong = augmentation.Compose([shift, augmentation.Jitter(0.15), augmentation.Scale(0.1)])
    consistency = {"mode": "consistency", "augment": shift, "strong": strong, "rounds": 1}
    options: dict[str, dict[str, Any]] = {
        "adaptive": {"select": Adaptive()},
        "fixmatch": {"select": Adaptive(0.99), "warm_start": True, "batch_size": 16, **consistency},
    }
    histories = {}
    for name, own in options.items():
        extract = TimeSeriesFeatures(names)
        stages = Pipeline(stages=[extract, Standardize()])
        width = len(extract.feature_names)
        histories[name] = train(seed, split, lambda n=width: mlp(n, 4), preprocess=stages, **own)
    return histories


RUNS = {
    "digits": digits_run,
    "fixmatch": fixmatch_run,
    "miscalibrated": miscalibrated_run,
    "series": series_run,
    "vibration": vibration_run,
}


def peer(split: Split, scale: float) -> tuple[float, float]:
    """Return the accuracy of logistic regression without and with scikit-learn's self-training."""
    split = {name: (scale * x, y) for name, (x, y) in split.items()}
    (x, y), (pool, _) = split["labeled"], split["unlabeled"]
    alone = LogisticRegression(max_iter=1000).fit(x, y)
    model = SelfTrainingClassifier(LogisticRegression(max_iter=1000), threshold=0.75)
    model.fit(np.concatenate([x, pool]), np.concatenate([y, np.full(len(pool), -1)]))
    return tuple(100 * each.score(*split["test"]) for each in (alone, model))


def row(name: str, backend: str, pairs: list[tuple[float, float]], seconds: float) -> None:
    """Print a line of the table."""
    before, after = np.array(pairs).T
    print(
        f"{name:<24}{backend:<8}{len(pairs):>5}{before.mean():>12.1f}{after.mean():>14.1f}"
        f"{(after - before).mean():>+8.1f}{(after > before).sum():>5}/{len(pairs)}"
        f"{(after - before).min():>+8.1f}{seconds / len(pairs):>9.1f}",
        flush=True,
    )


def measure(name: str, backend: str, seeds: int) -> dict[str, SelfTrainingHistory]:
    """Run all seeds on a backend, print the rows, and return the histories of seed 0."""
    start = time.process_time()
    with ember_ml.use_backend(backend):
        runs = [RUNS[name](seed) for seed in range(seeds)]
    seconds = (time.process_time() - start) / len(runs[0])
    for kind in runs[0]:
        pairs = [(100 * h[kind][0]["test_accuracy"], _final(h[kind])) for h in runs]
        row(f"{name}: {kind}", backend, pairs, seconds)
        pools = [
            (100 * h[kind][0]["pool_accuracy"], 100 * h[kind].best["pool_accuracy"]) for h in runs
        ]
        print(f"{'':<24}on the unlabeled data: {np.mean(pools, axis=0).round(1).tolist()}")
        eces = [h[kind][0]["ece"] for h in runs if "ece" in h[kind][0]]
        if eces:
            print(f"{'':<24}calibration error of the supervised model: {np.mean(eces):.3f}")
    return runs[0]


def _final(history: SelfTrainingHistory) -> float:
    return float(100 * history.best["test_accuracy"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=list(RUNS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--backends", default="torch,numpy,mlx")
    parser.add_argument("--plots", type=Path, help="folder for a plot of each part's first run")
    options = parser.parse_args()
    print(
        f"{'':<24}{'backend':<8}{'seeds':>5}{'supervised':>12}{'self-trained':>14}{'gain':>8}"
        f"{'better':>8}{'worst':>8}{'CPU s':>9}"
    )
    for name in options.parts:
        for at, backend in enumerate(options.backends.split(",")):
            seeds = min(options.seeds, options.seeds if at == 0 else OTHERS)
            histories = measure(name, backend, seeds)
            if at == 0 and options.plots is not None:
                last = list(histories.values())[-1]
                last.plot(options.plots / f"self_training_{name}.png")
        if name not in ("fixmatch", "vibration"):
            data, scale = (series, 1.0) if name == "series" else (digits, 16.0)
            start = time.process_time()
            pairs = [peer(data(seed), scale) for seed in range(options.seeds)]
            row(f"{name}: scikit-learn", "", pairs, time.process_time() - start)


if __name__ == "__main__":
    main()
