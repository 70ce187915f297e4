"""Hyperparameter search that learns from other tasks, against random search, TPE and a GP.

Leave one source out: each of 17 tasks is searched with the scores of all tasks of other sources as
history. The 40 configurations are fixed, and their scores come from `benchmarks/tuning_tasks.py`.
The regret is the difference to the best of the 40 validation accuracies, in points, averaged over
the tasks of a source and then over the sources. Intervals are 95 % intervals of the difference to
`auto`, from a bootstrap over sources.

- random, tpe (Optuna), gp (scikit-learn, expected improvement): see the task itself only.
- mean-score, meta-model: the samplers of Ember.
- meta-model without meta-features, and with meta-features shuffled between the tasks.
- auto: selects one of them by cross-validation on the history.

    python benchmarks/tuning.py [--plot]

`--plot` draws `docs/images/tuning.png` and `docs/images/learning_rate.png`.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "EMBER_ML_BACKEND": "numpy"}

import json
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tuning_tasks import PATH, SPACE, configurations

from ember_ml.training.tuning import (
    AutoSampler,
    MeanScoreSampler,
    MetaModelSampler,
    RandomSampler,
    Sampler,
    Search,
    TPESampler,
    Trial,
)

BUDGETS = (1, 2, 4, 8, 16)
METRIC = {"val_accuracy": "max"}
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "tuning.png"
TABLE: dict[str, Any] = json.loads(PATH.read_text())
CONFIGURATIONS = configurations()
SOURCES = sorted({row["source"] for row in TABLE.values()})


class GaussianProcess(Sampler):
    """Expected improvement of a Gaussian process on the task's trials, after two random ones."""

    name = "gp"

    def propose(self, search: Search) -> dict[str, Any]:
        """Return the candidate with the largest expected improvement."""
        from scipy.stats import norm
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        pool = search.untried(0)
        if len(search.trials) < 2:
            return RandomSampler().propose(search)
        rows = np.array([SPACE.encode(trial.params) for trial in search.trials])
        scores = np.array([trial.scores["val_accuracy"] for trial in search.trials])
        kernel = ConstantKernel() * Matern(nu=2.5) + WhiteKernel(1e-3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounds of the kernel
            model = GaussianProcessRegressor(kernel, normalize_y=True).fit(rows, scores)
        mean, std = model.predict([SPACE.encode(each) for each in pool], return_std=True)
        gap = (mean - scores.max()) / np.maximum(std, 1e-9)
        return pool[int(np.argmax(std * (gap * norm.cdf(gap) + norm.pdf(gap))))]


def trials_of(task: str, meta: dict[str, float]) -> list[Trial]:
    """Return all trials of a task."""
    first = 1000 * list(TABLE).index(task)
    return [
        Trial(
            first + at,
            params,
            task=task,
            source=TABLE[task]["source"],
            meta=meta,
            state="done",
            scores={"val_accuracy": score},
        )
        for at, (params, score) in enumerate(
            zip(CONFIGURATIONS, TABLE[task]["scores"], strict=True)
        )
    ]


def regrets(sampler: Sampler, task: str, seed: int, metas: dict[str, Any]) -> list[float]:
    """Return the regret in points at each budget of a search on a task."""
    source = TABLE[task]["source"]
    others = [
        trial
        for name, row in TABLE.items()
        if row["source"] != source
        for trial in trials_of(name, metas[name])
    ]
    known = {json.dumps(trial.params): trial for trial in trials_of(task, metas[task])}
    done: list[Trial] = []
    for number in range(max(BUDGETS)):
        search = Search(
            SPACE,
            METRIC,
            trials=done,
            others=others,
            meta=metas[task],
            source=source,
            seed=random.Random(f"{task}/{seed}/{number}").getrandbits(32),
            candidates=CONFIGURATIONS,
        )
        done.append(known[json.dumps(sampler.propose(search))])
    scores = [trial.scores["val_accuracy"] for trial in done]
    best = max(TABLE[task]["scores"])
    return [100 * (best - max(scores[:budget])) for budget in BUDGETS]


def shuffled(seed: int) -> dict[str, Any]:
    """Return meta-features of another task for each task."""
    names = list(TABLE)
    order = names[:]
    random.Random(seed).shuffle(order)
    return {name: TABLE[other]["meta"] for name, other in zip(names, order, strict=True)}


def measure(make: Callable[[int], Sampler], repeats: int, *, shuffle: bool = False) -> np.ndarray:
    """Return the mean regret of each source at each budget, over repetitions with other seeds."""
    rows: dict[str, list[list[float]]] = {source: [] for source in SOURCES}
    for seed in range(repeats):
        own = {name: row["meta"] for name, row in TABLE.items()}
        metas = shuffled(seed) if shuffle else own
        for task, row in TABLE.items():
            rows[row["source"]].append(regrets(make(seed), task, seed, metas))
    return np.array([np.mean(rows[source], axis=0) for source in SOURCES])


def interval(difference: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean over sources."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(difference), (10_000, len(difference)))
    low, high = np.quantile(difference[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


METHODS: dict[str, tuple[Callable[[int], Sampler], int, bool]] = {
    "random": (lambda seed: RandomSampler(), 100, False),
    "tpe": (lambda seed: TPESampler(), 20, False),
    "gp": (lambda seed: GaussianProcess(), 10, False),
    "mean-score": (lambda seed: MeanScoreSampler(), 1, False),
    "meta-model": (lambda seed: MetaModelSampler(seed=seed), 3, False),
    "without meta-features": (lambda seed: MetaModelSampler(uses_meta=False, seed=seed), 3, False),
    "shuffled meta-features": (lambda seed: MetaModelSampler(seed=seed), 6, True),
    "auto": (lambda seed: AutoSampler(), 1, False),
}


def plot(results: dict[str, np.ndarray]) -> None:
    """Draw the regret against the budget."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name in ("random", "tpe", "gp", "mean-score", "meta-model", "auto"):
        axes.plot(BUDGETS, results[name].mean(axis=0), marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(BUDGETS, labels=map(str, BUDGETS))
    axes.set_xlabel("trials")
    axes.set_ylabel("regret (points of accuracy)")
    axes.legend()
    figure.savefig(IMAGE, dpi=120)


def plot_range_test() -> None:
    """Draw a learning rate range test of an MLP on the digits."""
    from tuning_tasks import split

    import ember_ml as ember
    from ember_ml.training.tuning import lr_range_test

    ember.ops.random.set_seed(0)
    model = ember.nn.layers.MLP(64, [64], 10)
    trainer = ember.training.Trainer(model, "cross_entropy", seed=0, progress=False)
    lr_range_test(trainer, split("digits")[0], low=1e-5).plot(IMAGE.with_name("learning_rate.png"))


def main() -> None:
    """Print the table of regrets, and the differences to `auto`."""
    results = {}
    print(f"| regret at budget | {' | '.join(map(str, BUDGETS))} |")
    print("|---|" + "---|" * len(BUDGETS))
    for name, (make, repeats, shuffle) in METHODS.items():
        start = time.process_time()
        results[name] = measure(make, repeats, shuffle=shuffle)
        row = " | ".join(f"{value:.2f}" for value in results[name].mean(axis=0))
        print(f"| {name} | {row} |  ({time.process_time() - start:.0f} s)", flush=True)
    pairs = [(name, "auto") for name in METHODS if name != "auto"]
    pairs += [
        (name, "meta-model") for name in METHODS if "features" in name or name == "mean-score"
    ]
    print("\nDifference of regrets (positive: the second is better) with 95 % intervals:")
    for name, other in pairs:
        gap = results[name] - results[other]
        parts = []
        for at in range(len(BUDGETS)):
            low, high = interval(gap[:, at])
            parts.append(f"{gap[:, at].mean():+.2f} [{low:+.2f}, {high:+.2f}]")
        print(f"| {name} - {other} | {' | '.join(parts)} |")
    worst = statistics.fmean(results["auto"][:, -1]) - statistics.fmean(results["tpe"][:, -1])
    print(f"\nauto minus tpe at budget {BUDGETS[-1]}: {worst:+.2f} points")
    if "--plot" in sys.argv[1:]:
        plot(results)
        plot_range_test()


if __name__ == "__main__":
    main()
