"""Time and accuracy of the runs of `make mad` in two source trees.

Each run is trained and evaluated in both trees, in a process and one thread each. The processes
take turns: one waits while the other trains to its next evaluation, so that both see the same load.
Times are CPU times of whole runs, with data and evaluations, without the start of the process, the
imports and the first steps.

    git worktree add ../before COMMIT
    python benchmarks/mad_versions.py ../before [--backend torch] [--tasks recall ...]

The other tree's C kernels are used if they were built there (`make native`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from source_trees import HERE, TreeProcess

ARCHITECTURES = ("attention+swiglu", "mamba+swiglu", "hyena+swiglu")


class Run(TreeProcess):
    """Training of one run with the package of a source tree.

    Args:
        tree: Folder with `ember_ml`.
        run: Backend, scale, architecture and task of the run.

    Attributes:
        result: CPU seconds and test accuracy, once the run has ended.
    """

    def __init__(self, tree: Path, run: list[str]) -> None:
        super().__init__(tree, __file__, "--train", *run)
        self.result: tuple[float, float] | None = None

    def advance(self) -> None:
        """Train to the next evaluation, or to the end."""
        line = self.ask()
        if not line:
            raise SystemExit("a run failed")
        self.result = json.loads(line)


def train(backend: str, scale: str, architecture: str, task: str) -> None:
    """Train a run; wait for a line of the standard input at each evaluation."""
    import ember_ml

    ember_ml.set_backend(backend)
    from ember_ml.mad.architecture import architecture as parse
    from ember_ml.mad.run import execute, probe
    from ember_ml.mad.scales import get_scale, make_runs, task_names

    patterns = [parse(architecture)]
    (run,) = make_runs(get_scale(scale), patterns, task_names([task]), [0])
    probe(run)  # imports what the run needs
    started = None

    def pause(*_: object) -> None:
        nonlocal started
        if started is not None:
            print("null", flush=True)
        input()
        started = started or time.process_time()

    pause()
    accuracy = execute(run, observe=pause).accuracy
    print(json.dumps([time.process_time() - (started or 0.0), accuracy]), flush=True)


def compare(before: Path, run: list[str]) -> list[tuple[float, float]]:
    """Return the CPU seconds and the accuracy of a run in another tree and in this one."""
    runs = [Run(before, run), Run(HERE, run)]
    try:
        while any(each.result is None for each in runs):
            for each in runs:
                if each.result is None:
                    each.advance()
    finally:
        for each in runs:
            each.close()
    return [each.result for each in runs if each.result is not None]


def main() -> None:
    """Compare all runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="source tree to compare with")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--architectures", nargs="*", default=list(ARCHITECTURES))
    options = parser.parse_args()
    from ember_ml.mad.scales import task_names

    print(f"{options.backend}: CPU seconds before and now, ratio, accuracy before and now")
    totals = [0.0, 0.0]
    for architecture in options.architectures:
        for task in task_names(options.tasks):
            run = [options.backend, options.scale, architecture, task]
            (before, first), (now, second) = compare(options.before, run)
            totals = [totals[0] + before, totals[1] + now]
            print(
                f"{architecture:18} {task:26} {before:7.1f} {now:7.1f} {now / before:6.2f} "
                f"{100 * first:8.1f} {100 * second:6.1f}",
                flush=True,
            )
    print(f"{'all':45} {totals[0]:7.1f} {totals[1]:7.1f} {totals[1] / totals[0]:6.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(*sys.argv[2:])
    else:
        main()
