"""Time-series classification: statistical features and an MLP against sequence models.

    python examples/time_series.py [--backend torch] [--epochs 12] [--quick]

The series imitate the vibration of machines: healthy, unbalanced, with a damaged bearing, or loose.
They have unequal lengths. The script trains an MLP on `TimeSeriesFeatures`, and sequence models on
the values themselves. It prints their accuracy on unseen series of the same lengths and of four
times the length, and which features matter most. Files are written to runs/time_series.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.data import DataLoader, GeneratedDataset, pad_collate
from ember_ml.nn.features import Standardize, TimeSeriesFeatures
from ember_ml.nn.pipeline import InferencePipeline, TrainingPipeline
from ember_ml.training import Trainer

CLASSES = ("healthy", "unbalanced", "bearing", "loose")
MODELS = {"GRU": "gru", "Mamba": "mamba swiglu"}
FEATURES = ("std", "min", "max", "skew", "kurtosis", "mean_abs_change", "acf", "spectral")
LENGTHS = (40, 160)


class Machines(GeneratedDataset):
    """Dataset of (values, class): vibrations, each a function of its index.

    Args:
        count: Number of series.
        seed: Seed of all series.
        longer: Factor of the lengths. Default: 1.
    """

    def __init__(self, count: int, seed: int, longer: int = 1) -> None:
        self.longer = longer
        super().__init__(self._vibration, count, seed)

    def _vibration(self, index: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        label = index % len(CLASSES)
        time = np.arange(self.longer * int(rng.integers(*LENGTHS, endpoint=True)))
        turns = rng.uniform(0.04, 0.08)  # per time step
        phase = 2 * np.pi * (turns * time + rng.uniform())
        values = np.sin(phase) + rng.uniform(0.2, 0.4) * np.sin(2 * phase + rng.uniform(0, 6))
        if CLASSES[label] == "unbalanced":
            values += rng.uniform(0.3, 0.6) * np.sin(phase)
        elif CLASSES[label] == "bearing":
            hits = np.diff(np.floor(phase * rng.uniform(0.5, 0.7) / np.pi), prepend=0.0) != 0
            values += rng.uniform(0.8, 1.6) * hits
        elif CLASSES[label] == "loose":
            values = np.clip(values, -rng.uniform(0.5, 0.9), None)
        values += rng.uniform(0.2, 0.5) * rng.standard_normal(len(time))
        return values.astype(np.float32), label


def split(data: Machines) -> tuple[list[np.ndarray], list[str]]:
    """Return the values and the names of the classes."""
    examples = [data[index] for index in range(len(data))]
    return [values for values, _ in examples], [CLASSES[label] for _, label in examples]


def train_features(
    data: Machines, test: Sequence[Machines], options: argparse.Namespace
) -> tuple[list[float], InferencePipeline]:
    """Train an MLP on the features; return its accuracy on each test set, and the pipeline."""
    extract = TimeSeriesFeatures(FEATURES)
    values, labels = split(data)
    ops.random.set_seed(options.seed)
    pipeline = TrainingPipeline(
        Standardize(),
        nn.layers.MLP(len(extract.feature_names), [32], len(CLASSES)),
        trainer={"learning_rate": 1e-2, "schedule": "cosine", "seed": options.seed},
        epochs=2 * options.epochs,
        folder=options.out / "features",
    )
    pipeline.fit((extract(values), labels), overwrite=True, progress=False)
    inference = InferencePipeline.load(options.out / "features")
    scores = []
    for part in test:
        values, labels = split(part)
        scores.append(float(np.mean(np.array(inference(extract(values))) == np.array(labels))))
    return scores, inference


def importance(inference: InferencePipeline, test: Machines, seed: int) -> dict[str, float]:
    """Return how much accuracy is lost if a feature is exchanged between the series."""
    extract = TimeSeriesFeatures(FEATURES)
    values, labels = split(test)
    table = extract(values).numpy()
    rng = np.random.default_rng(seed)

    def accuracy(features: np.ndarray) -> float:
        return float(np.mean(np.array(inference(features)) == np.array(labels)))

    lost = {}
    for at, name in enumerate(extract.feature_names):
        shuffled = table.copy()
        shuffled[:, at] = rng.permutation(shuffled[:, at])
        lost[name] = accuracy(table) - accuracy(shuffled)
    return dict(sorted(lost.items(), key=lambda item: item[1]))


def train_sequence_model(
    layers: str, data: Machines, test: Sequence[Machines], options: argparse.Namespace
) -> list[float]:
    """Train a classifier on the values; return its accuracy on each test set."""
    ops.random.set_seed(options.seed)
    model = nn.models.SequenceClassifier(layers, len(CLASSES), in_features=1, hidden_size=32)
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 1e-2},
        schedule="cosine",
        metrics=["accuracy"],
        clip_norm=1.0,
        seed=options.seed,
        progress=False,
    )

    def batches(part: Machines, shuffle: bool = False) -> DataLoader:
        with_features = part.map(lambda example: (example[0][:, None], example[1]))
        return DataLoader(
            with_features, 32, shuffle=shuffle, seed=0, collate=pad_collate(returns="mask")
        )

    trainer.fit(batches(data, shuffle=True), epochs=options.epochs)
    return [trainer.evaluate(batches(part))["accuracy"] for part in test]


def draw(
    data: Machines, results: dict[str, list[float]], lost: dict[str, float], path: Path
) -> None:
    """Plot one series of each class, the accuracies, and the importance of the features."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for at, name in enumerate(CLASSES):
        left.plot(data[at][0] - 5 * at, lw=0.8, label=name)
        left.text(0, -5 * at + 2.0, name)
    left.set(xlabel="time step", yticks=[])
    width = 0.8 / len(results)
    for at, (name, scores) in enumerate(results.items()):
        middle.bar(np.arange(2) + at * width, scores, width, label=name)
    middle.set(xticks=np.arange(2) + 0.4 - width / 2, ylim=(0, 1.3), ylabel="accuracy")
    middle.set_xticklabels(["same lengths", "4x the length"])
    middle.legend(frameon=False, loc="upper left")
    right.barh(list(lost), list(lost.values()), color="tab:orange")
    right.set(xlabel="accuracy lost without it")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def run(options: argparse.Namespace) -> None:
    """Train all models, and compare them on unseen series."""
    count = 64 if options.quick else 800
    data = Machines(count, seed=options.seed)
    test = [Machines(count // 2, 1000 + options.seed, longer) for longer in (1, 4)]
    print(f"{count} series of {LENGTHS[0]} to {LENGTHS[1]} values on {options.backend}")
    scores, inference = train_features(data, test, options)
    results = {"features + MLP": scores}
    for name, layers in MODELS.items():
        results[name] = train_sequence_model(layers, data, test, options)
    for name, (same, longer) in results.items():
        print(f"{name:15} accuracy {same:.3f}   on four times the length {longer:.3f}")
    lost = importance(inference, test[0], options.seed)
    print("features that matter most:", ", ".join(list(lost)[:-4:-1]))
    draw(data, results, lost, options.out / "time_series.png")


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/time_series"))
    parser.add_argument("--quick", action="store_true", help="few series, one epoch")
    options = parser.parse_args(arguments)
    options.epochs = 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        run(options)


if __name__ == "__main__":
    main()
