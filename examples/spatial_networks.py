"""Recurrent networks in space: paying for long connections makes them local and modular.

    python examples/spatial_networks.py [--backend torch] [--model SeRNN] [--seeds 5] [--quick]

A goal is shown for 20 steps, nothing for 10 steps, and two of four directions for 20 steps; the
network names the direction that leads to the goal. It is trained with and without the wiring cost.
The script prints accuracy, the correlation of absolute weights and distances, modularity and
small-worldness, and what pruning costs. Files are written to runs/spatial_networks.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.nn import wirings
from ember_ml.training import Trainer

GAMMAS = {"SeRNN": 0.1, "SeRSNN": 0.02}
"""Factors of the wiring cost."""
COLORS = {"without cost": "0.6", "with cost": "tab:red"}
PLOTTED = ("accuracy", "correlation", "modularity")


def mazes(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy inputs of 50 steps, (count, 50, 8), and the right directions.

    Inputs 0 to 3 are goals: bit 0 is right, bit 1 is up. Inputs 4 and 5 offer left and right,
    inputs 6 and 7 down and up. The 8 mazes are the goals with one of the two pairs.
    """
    goals, is_vertical = rng.integers(0, 4, count), rng.integers(0, 2, count)
    rows = np.arange(count)
    x = rng.normal(0.0, 0.05, (count, 50, 8)).astype(np.float32)
    x[rows, :20, goals] += 1.0
    for offered in (4, 5):
        x[rows, 30:, offered + 2 * is_vertical] += 1.0
    return x, np.where(is_vertical, 2 + goals // 2, goals % 2)


class Result(NamedTuple):
    """Weights of a trained network before pruning, its neurons in space and its measures."""

    weights: np.ndarray
    distances: np.ndarray
    positions: np.ndarray
    costs: list[float]
    measures: dict[str, float]


def measure(model: Any, accuracy: float) -> dict[str, float]:
    """Return the measures of a network."""
    weights = model.recurrent_weight()
    return {
        "accuracy": accuracy,
        "correlation": wirings.distance_correlation(weights, model.distances()),
        "modularity": wirings.modularity(weights),
        "small-worldness": wirings.small_worldness(weights),
    }


def train(name: str, gamma: float, seed: int, options: argparse.Namespace) -> Result:
    """Train a network and prune it afterwards."""
    rng = np.random.default_rng(seed)
    data, held_out = mazes(options.samples, rng), mazes(512, rng)
    ops.random.set_seed(seed)
    model = getattr(nn.models, name)(8, 4, options.units, gamma=gamma)
    trainer = Trainer(
        model,
        metrics=["accuracy"],
        optimizer="adam",
        learning_rate=5e-4 if name == "SeRNN" else 2e-3,
        clip_norm=1.0,
        seed=seed,
        progress=False,
    )
    history = trainer.fit(data, validation=held_out, epochs=options.epochs, batch_size=128)
    measures = measure(model, history.epochs[-1]["val_accuracy"])
    space = model.recurrent_weight(), model.distances(), model.positions
    arrays = [np.array(each.numpy()) for each in space]
    costs = history.column("wiring_cost")
    for fraction in (0.5, 0.7, 0.9):
        model.prune(fraction=fraction)
        measures[f"accuracy, {fraction:.0%} pruned"] = trainer.evaluate(held_out)["accuracy"]
    trainer.fit(data, epochs=1, batch_size=128)  # pruned connections stay zero
    again = trainer.evaluate(held_out)["accuracy"]
    measures[f"accuracy, {model.sparsity().fraction:.0%} pruned, one more epoch"] = again
    return Result(*arrays, costs, measures)


def mean_and_range(values: Sequence[float]) -> str:
    """Return the mean, and the smallest and largest of several values."""
    text = f"{statistics.fmean(values):7.3f}"
    return text if len(values) == 1 else f"{text}  ({min(values):.3f} to {max(values):.3f})"


def compare(name: str, options: argparse.Namespace) -> dict[str, list[Result]]:
    """Train networks with and without the cost, and print their measures."""
    results: dict[str, list[Result]] = {}
    for label, gamma in (("without cost", 0.0), ("with cost", GAMMAS[name])):
        results[label] = [train(name, gamma, seed, options) for seed in range(options.seeds)]
        print(f"{name}, gamma={gamma:g}, {options.seeds} seed(s)")
        for key in results[label][0].measures:
            values = [result.measures[key] for result in results[label]]
            print(f"    {key:38} {mean_and_range(values)}")
    costs = " ".join(f"{cost:.3g}" for cost in results["with cost"][0].costs)
    print(f"    wiring cost by epoch, first seed: {costs}")
    return results


def plot_profile(axes: Any, results: dict[str, list[Result]]) -> None:
    """Plot the mean absolute weight of connections by their length."""
    for label, runs in results.items():
        groups = np.round(runs[0].distances)
        lengths = np.unique(groups)[1:]  # without the neurons themselves
        strengths = np.mean([abs(run.weights) for run in runs], axis=0)
        means = [strengths[groups == length].mean() for length in lengths]
        axes.plot(lengths, means, marker=".", color=COLORS[label], label=label)
    axes.set(xlabel="distance", ylabel="mean |weight|")
    axes.legend(frameon=False)


def plot_measures(axes: Any, results: dict[str, list[Result]]) -> None:
    """Plot the measures of all seeds."""
    for label, runs in results.items():
        shift = 0.12 if label == "with cost" else -0.12
        for place, key in enumerate(PLOTTED):
            values = [run.measures[key] for run in runs]
            axes.plot([place + shift] * len(values), values, "o", ms=4, color=COLORS[label])
    axes.axhline(0.0, lw=0.5, color="0.8")
    axes.set_xticks(range(len(PLOTTED)), PLOTTED)
    axes.set_xlim(-0.5, len(PLOTTED) - 0.5)


def plot_space(axes: Any, result: Result, title: str) -> None:
    """Draw the neurons and their strongest connections."""
    strengths = abs(result.weights)
    np.fill_diagonal(strengths, 0.0)
    for at in np.argsort(strengths, axis=None)[-strengths.size // 50 :]:
        pair = list(np.unravel_index(at, strengths.shape))
        axes.plot(*result.positions[pair].T, lw=0.6, alpha=0.6, color="tab:blue")
    axes.scatter(*result.positions.T, s=10, color="black")
    axes.set_title(title, fontsize=9)
    axes.set_axis_off()


def draw(name: str, results: dict[str, list[Result]], path: Path) -> None:
    """Save the figure of a kind of network."""
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    plot_measures(figure.add_subplot(1, 4, 1, title=name), results)
    plot_profile(figure.add_subplot(1, 4, 2), results)
    for at, (label, runs) in enumerate(results.items()):
        axes = figure.add_subplot(1, 4, 3 + at, projection="3d")
        plot_space(axes, runs[0], f"strongest connections {label}")
    for axes in figure.axes[:2]:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=80)


def main(arguments: list[str] | None = None) -> None:
    """Parse the options, train and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--model", nargs="+", choices=list(GAMMAS), default=list(GAMMAS))
    parser.add_argument("--seeds", type=int, default=1, help="number of networks of each kind")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("runs/spatial_networks"))
    parser.add_argument("--quick", action="store_true", help="small networks, one epoch")
    options = parser.parse_args(arguments)
    options.samples, options.units = (256, 27) if options.quick else (5120, 100)
    options.epochs = 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        for name in options.model:
            draw(name, compare(name, options), options.out / f"{name.lower()}.png")


if __name__ == "__main__":
    main()
