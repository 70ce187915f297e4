"""Handwritten digits: train an MLP on each installed backend and plot the curves.

    python examples/digits.py [numpy torch mlx] [--epochs 30] [--folder runs/digits]

Requires scikit-learn for the data. All backends start from the same weights and see the same
batches.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ember_ml as ember
from ember_ml import nn
from ember_ml.nn import layers
from ember_ml.training import Trainer


def data() -> tuple[tuple, tuple]:
    """Return training and test data: images of 64 values in [0, 1], and their digits."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16.0).astype("float32")
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits, test_size=0.25, random_state=0, stratify=digits
    )
    return (train_x, train_y), (test_x, test_y)


def train(backend: str, epochs: int, folder: Path, progress: bool = True) -> float:
    """Train on a backend, plot the curves, and return the test accuracy."""
    train_data, test_data = data()
    with ember.use_backend(backend):
        ember.ops.random.set_seed(0)
        model = nn.Sequential(
            layers.MLP(64, [128, 64], 10, activation="relu", dropout=0.1),
        )
        trainer = Trainer(
            model,
            "cross_entropy",
            optimizer={"type": "adamw", "learning_rate": 3e-3, "weight_decay": 1e-2},
            schedule="cosine",
            metrics=["accuracy"],
            seed=0,
            progress=progress,
        )
        history = trainer.fit(train_data, test_data, epochs=epochs, batch_size=64)
    folder.mkdir(parents=True, exist_ok=True)
    history.plot(folder / f"{backend}.png")
    ember.save(model, folder / backend)
    return history.epochs[-1]["val_accuracy"]


def main() -> None:
    """Train on the given backends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("backends", nargs="*", help="default: all installed ones")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folder", type=Path, default=Path("runs/digits"))
    options = parser.parse_args()
    for backend in options.backends or ember.backend.available():
        print(f"{backend}:")
        accuracy = train(backend, options.epochs, options.folder)
        print(f"{backend}: test accuracy {accuracy:.1%}; curves in {options.folder / backend}.png")


if __name__ == "__main__":
    main()
