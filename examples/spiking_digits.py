"""Spiking networks: digits as spike times, and intervals that only delays can measure.

    python examples/spiking_digits.py [digits | intervals] [--backend torch] [--quick]

Requires scikit-learn for the digits. In the first task each pixel fires once: the brighter, the
earlier. In the second one, two neurons fire once each, and the class is the interval between them.
The hidden neurons forget within a step or two, so that the network needs delays to compare the
times. It is trained without delays, with fixed random delays and with learned ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.nn import layers
from ember_ml.training import Trainer

STEPS = 12
"""Number of steps of a digit."""
CLASSES, GAP, LENGTH = 8, 2, 24
"""Number of intervals, difference of two intervals, and steps of a sequence."""
LONGEST = GAP * CLASSES
"""The longest interval, which is also the longest delay."""
Data = tuple[np.ndarray, np.ndarray]


def loud(gain: float) -> dict[str, object]:
    """Return initial weights that are large enough for single spikes to make neurons fire."""
    return {"type": "initializers/glorot", "gain": gain}


def digits() -> tuple[Data, Data]:
    """Return training and test data: spikes, (examples, steps, 64), and digits."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.25, random_state=0, stratify=labels
    )
    encode = nn.features.LatencyEncoder(STEPS, threshold=0.1)
    spikes = [encode(part.astype("float32")).numpy() for part in (train_x, test_x)]
    return (spikes[0], train_y), (spikes[1], test_y)


def digit_network(hidden: int = 128) -> nn.Sequential:
    """Return a network of one hidden layer of spiking neurons, with leaky integrators to read."""
    return nn.Sequential(
        layers.Dense(64, hidden, kernel_initializer=loud(2.0)),
        layers.LIF(hidden, beta=0.9),
        layers.Dense(hidden, 10),
        layers.LeakyIntegrator(10, beta=0.95),
        layers.MaxDecoder(),
    )


def intervals(count: int, seed: int) -> Data:
    """Return spikes of two neurons, (examples, steps, 2), and the class of their interval."""
    rng = np.random.default_rng(seed)
    spikes = np.zeros((count, LENGTH, 2), np.float32)
    labels = rng.integers(0, CLASSES, count)
    gaps = GAP * (1 + labels)
    starts = rng.integers(0, LENGTH - LONGEST, count)
    spikes[np.arange(count), starts, 0] = 1.0
    spikes[np.arange(count), starts + gaps, 1] = 1.0
    return spikes, labels


def interval_network(max_delay: int, learn_delays: bool, hidden: int = 12) -> nn.Sequential:
    """Return a recurrent network whose neurons forget quickly."""
    return nn.Sequential(
        layers.Dense(2, hidden, kernel_initializer=loud(3.0)),
        layers.RecurrentLIF(hidden, beta=0.3, max_delay=max_delay, learn_delays=learn_delays),
        layers.Dense(hidden, CLASSES),
        layers.RateDecoder(count=True),
    )


def train(
    model: nn.Module, data: tuple[Data, Data], epochs: int, rate: float, seed: int = 0
) -> tuple[float, Trainer]:
    """Train a classifier, and return its test accuracy and the trainer."""
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": rate, "weight_decay": 1e-2},
        schedule="cosine",
        metrics=["accuracy"],
        seed=seed,
        progress=False,
    )
    history = trainer.fit(*data, epochs=epochs, batch_size=64)
    return history.epochs[-1]["val_accuracy"], trainer


def run_digits(epochs: int, folder: Path) -> None:
    """Train on digits, and print the accuracy and how often neurons fire."""
    ops.random.set_seed(0)
    data = digits()
    model = digit_network()
    accuracy, _ = train(model, data, epochs, 5e-3)
    hidden = model[1](model[0](nn.tensor.array(data[1][0])))
    spikes = hidden.sum().item() / len(data[1][0])
    print(f"digits: test accuracy {accuracy:.1%}, {spikes:.0f} hidden spikes per digit")
    ember.save(model, folder / "digits")
    plot(model, data[1], folder / "spiking.png")


def plot(model: nn.Sequential, data: Data, path: Path) -> None:
    """Plot the spikes and voltages of one digit."""
    from matplotlib.figure import Figure

    example = nn.tensor.array(data[0][:1])
    run = model[1].run(model[0](example))
    outputs = model[3](model[2](run.spikes))[0].numpy()
    voltages, spikes = run.voltages[0].numpy(), run.spikes[0].numpy()
    busiest = int(spikes.sum(0).argmax())
    figure = Figure(figsize=(11, 3), layout="constrained")
    pixels, neuron, hidden, readout = figure.subplots(1, 4)
    pixels.eventplot([np.flatnonzero(train) for train in data[0][0].T], colors="black")
    pixels.set(title=f"pixels of a {data[1][0]}: spikes", ylabel="pixel")
    neuron.plot(voltages[:, busiest], marker=".")
    neuron.axhline(1.0, linestyle=":", color="black")
    neuron.vlines(np.flatnonzero(spikes[:, busiest]), 1.0, 1.3, colors="C3")
    neuron.set(title="a hidden neuron: voltage", ylabel="before the reset")
    hidden.eventplot([np.flatnonzero(train) for train in spikes.T], colors="black")
    hidden.set(title="hidden neurons: spikes", ylabel="neuron")
    for digit, curve in enumerate(outputs.T):
        right = digit == data[1][0]
        readout.plot(curve, color="C3" if right else "0.7", label=str(digit) if right else None)
    readout.legend()
    readout.set(title="read-out: voltages", ylabel="voltage")
    for axes in (pixels, neuron, hidden, readout):
        axes.set(xlabel="step", xlim=(-0.5, STEPS - 0.5))
    figure.savefig(path, dpi=110)


def run_intervals(epochs: int, seeds: int, examples: int) -> None:
    """Train without, with fixed and with learned delays, and print the accuracies."""
    data = intervals(examples, 1), intervals(examples // 2, 2)
    kinds = {"no delays": (1, False), "fixed": (LONGEST, False), "learned": (LONGEST, True)}
    for name, (max_delay, learn) in kinds.items():
        scores = []
        for seed in range(seeds):
            ops.random.set_seed(seed)
            network = interval_network(max_delay, learn)
            scores.append(train(network, data, epochs, 2e-2, seed)[0])
        each = ", ".join(f"{score:.1%}" for score in scores)
        print(f"intervals, {name:9}: test accuracy {np.mean(scores):.1%} ({each})", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("task", nargs="?", choices=["digits", "intervals"], help="default: both")
    parser.add_argument("--backend", help="default: the active one")
    parser.add_argument("--quick", action="store_true", help="a few epochs only")
    parser.add_argument("--out", type=Path, default=Path("runs/spiking"))
    options = parser.parse_args(arguments)
    with ember.use_backend(options.backend or ember.backend.get_backend()):
        if options.task != "intervals":
            run_digits(2 if options.quick else 15, options.out)
        if options.task != "digits":
            run_intervals(*(1, 1, 128) if options.quick else (30, 3, 1024))


if __name__ == "__main__":
    main()
