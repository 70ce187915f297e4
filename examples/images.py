"""Image classification from files: a convolutional network and a patch transformer.

    python examples/images.py [--backend torch] [--epochs 20] [--quick]

Requires scikit-learn and Pillow. The script writes handwritten digits as PNG files, one folder for
each class: the digits have random colors and places. Worker processes read and augment the files.
Both models are trained with and without augmentation. The script prints the accuracy on the test
files; runs/images/images.png shows augmented images and the curves.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the other cores are for the worker processes

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ember_ml as ember
from ember_ml import nn
from ember_ml.data import DataLoader, random_stream, vision
from ember_ml.nn import layers
from ember_ml.training import Trainer

SIDE, PATCH, CLASSES = 16, 4, 10
SCALE = [vision.ToFloat(), vision.Normalize(0.5, 0.25)]
AUGMENT = [
    vision.RandomCrop(SIDE, padding=2, mode="edge"),
    vision.RandomResizedCrop(SIDE, scale=(0.7, 1.0), ratio=(0.8, 1.25)),
    vision.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.8, hue=0.5),
]
COLORS = {"conv net": "tab:blue", "patch transformer": "tab:orange"}


def picture(digit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a digit in a random bright color, size and place on a dark background."""
    size = int(rng.integers(11, 15))
    shape = vision.resize(digit.astype(np.float32)[..., None] / 16, size, interpolation="bicubic")
    top, left = rng.integers(0, SIDE - size, 2, endpoint=True)
    ink = np.zeros((SIDE, SIDE, 1), np.float32)
    ink[top : top + size, left : left + size] = np.clip(shape, 0, 1)
    background, color = rng.uniform(0.0, 0.4, 3), rng.uniform(0.5, 1.0, 3)
    noisy = background + (color - background) * ink + 0.06 * rng.standard_normal((SIDE, SIDE, 3))
    return np.clip(noisy, 0, 1)


def write_files(root: Path, count: int | None) -> None:
    """Write the digits to root/train/<class>/ and root/test/<class>/."""
    digits, classes = load_digits(return_X_y=True)
    numbers = np.arange(len(digits))[:count]
    train, test = train_test_split(numbers, test_size=0.3, random_state=0)
    for split, members in (("train", train), ("test", test)):
        for number in members:
            image = picture(digits[number].reshape(8, 8), random_stream(0, number))
            vision.write(root / split / str(classes[number]) / f"{number:04}.png", image)


def conv_net() -> nn.Module:
    """Return a small convolutional network."""
    return nn.Sequential(
        layers.Conv2D(3, 16, 3, activation="relu"),
        layers.BatchNorm(16),
        layers.MaxPool2D(2),
        layers.Conv2D(16, 32, 3, activation="relu"),
        layers.BatchNorm(32),
        layers.MaxPool2D(2),
        layers.Conv2D(32, 64, 3, activation="relu"),
        layers.BatchNorm(64),
        layers.GlobalAveragePool2D(),
        layers.Dense(64, CLASSES),
    )


def patch_transformer() -> nn.Module:
    """Return a transformer that reads an image as a sequence of patches."""
    return nn.models.SequenceClassifier(
        "(attention[num_heads=4, causal=false] swiglu)x2",
        CLASSES,
        in_features=PATCH * PATCH * 3,
        hidden_size=64,
        max_length=(SIDE // PATCH) ** 2,
    )


def train(name: str, augment: bool, root: Path, options: argparse.Namespace) -> list[float]:
    """Train a model on the files and return the test accuracy after each epoch."""
    ember.ops.random.set_seed(options.seed)
    model = conv_net() if name == "conv net" else patch_transformer()
    last = [vision.Patches(PATCH)] if name == "patch transformer" else []
    images = vision.ImageFolder(root / "train").map(
        vision.Compose([*(AUGMENT if augment else []), *SCALE, *last]), seed=options.seed
    )
    test = vision.ImageFolder(root / "test").map(vision.Compose([*SCALE, *last]))
    workers = {"num_workers": options.workers, "worker_type": "process"}
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 2e-3, "weight_decay": 1e-2},
        schedule="cosine",
        metrics=["accuracy"],
        seed=options.seed,
        progress=False,
    )
    with DataLoader(images, 64, shuffle=True, seed=options.seed, **workers) as loader:
        history = trainer.fit(loader, list(DataLoader(test, 256)), epochs=options.epochs)
    return [epoch["val_accuracy"] for epoch in history.epochs]


def compare(root: Path, options: argparse.Namespace) -> None:
    """Train both models with and without augmentation, print and plot the accuracies."""
    write_files(root, 120 if options.quick else None)
    curves = {}
    for name in COLORS:
        for augment in (False, True):
            curve = curves[name, augment] = train(name, augment, root, options)
            kind = "augmented" if augment else "plain"
            print(f"{name:18} {kind:10} test accuracy {curve[-1]:.1%}", flush=True)
    plot(vision.ImageFolder(root / "train"), curves).savefig(options.out / "images.png", dpi=150)
    print(f"plot: {options.out / 'images.png'}")


def plot(images: vision.ImageFolder, curves: dict[tuple[str, bool], list[float]]) -> Figure:
    """Return a figure of augmented images and of the test accuracies."""
    augment = vision.Compose(AUGMENT)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = []
    for index in np.linspace(0, len(images) - 1, 6).astype(int):
        image, _ = images[int(index)]
        copies = [augment(image, random_stream(1, int(index), epoch=epoch)) for epoch in range(6)]
        rows.append(np.concatenate([image, *copies], axis=1))
    left.imshow(np.concatenate(rows))
    left.axvline(SIDE - 0.5, color="white", linewidth=3)
    left.set(title="files, and six epochs of augmentation", xticks=[], yticks=[])
    for (name, augmented), curve in curves.items():
        kind, style = ("augmented", "-") if augmented else ("plain", "--")
        steps = range(1, len(curve) + 1)
        right.plot(steps, curve, style, color=COLORS[name], label=f"{name}, {kind}")
    right.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1))
    right.legend()
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="number of worker processes")
    parser.add_argument("--out", type=Path, default=Path("runs/images"))
    parser.add_argument("--quick", action="store_true", help="few images, one epoch")
    options = parser.parse_args(arguments)
    options.epochs = 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ember.use_backend(options.backend):
        compare(Path(folder), options)


if __name__ == "__main__":
    main()
