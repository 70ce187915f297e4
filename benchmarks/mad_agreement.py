"""Agreement of the ranking at the scale `mini` with the published scores of MAD.

Runs (or continues) a sweep of the architectures with published scores and a striped hybrid. Prints
both tables and Spearman's rank correlation for each task.

    python benchmarks/mad_agreement.py [backend] [--seed FIRST] [--seeds N] [--out DIR]
"""

from __future__ import annotations

import argparse

from ember_ml.mad import Sweep, cells
from ember_ml.mad.live import watch
from ember_ml.mad.report.published import PUBLISHED
from ember_ml.mad.scores import spearman

PEERS = {
    "Transformer": "attention+swiglu",
    "Hyena": "hyena+swiglu",
    "MH-Hyena": "mh-hyena+swiglu",
    "Mamba": "mamba+swiglu",
    "GLA": "gla+swiglu",
}
HYBRID = "hyena+swiglu+attention+swiglu"


def main() -> None:
    """Run the sweep and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", default="runs/mad-agreement")
    given = parser.parse_args()
    patterns = [*PEERS.values(), HYBRID]
    seeds = range(given.seed, given.seed + given.seeds)
    sweep = Sweep(patterns, given.out, seeds=seeds, backend=given.backend)
    watch(sweep)
    done = cells(sweep.store.done())
    accuracies = {(c.architecture, c.task): c.macro_accuracy.mean for c in done}  # as published
    for task in sweep.tasks:
        ours = [100 * accuracies[pattern, task] for pattern in PEERS.values()]
        theirs = [PUBLISHED[name][task] for name in PEERS]
        pairs = zip(PEERS, ours, theirs, strict=True)
        row = ", ".join(f"{name} {here:.1f} ({there:.1f})" for name, here, there in pairs)
        hybrid = 100 * accuracies[HYBRID, task]
        print(f"{task}: rho {spearman(ours, theirs):+.2f}; {row}; hybrid {hybrid:.1f}")
    means = [sum(accuracies[pattern, task] for task in sweep.tasks) for pattern in PEERS.values()]
    theirs = [sum(PUBLISHED[name].values()) for name in PEERS]
    print(f"mean over the tasks: rho {spearman(means, theirs):+.2f}")


if __name__ == "__main__":
    main()
