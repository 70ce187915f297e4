"""Time and accuracy of the runs of `make mad` in two source trees, side by side.

Each run is started in both trees at the same time, in one process and one thread each, so that both
see the same load; set-up and data are not part of the time. The other tree can be a worktree of an
earlier commit; its C kernels are used if they were built there (`make native`).

    git worktree add ../before COMMIT
    python benchmarks/mad_versions.py ../before [--backend torch] [--tasks recall ...]
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from ember_ml.mad.scales import task_names

HERE = Path(__file__).resolve().parents[1]
ARCHITECTURES = ("attention+swiglu", "mamba+swiglu", "hyena+swiglu")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(NamedTuple):
    """Result of a run in a tree."""

    seconds: float
    accuracy: float


def start(tree: Path, folder: Path, options: list[str]) -> subprocess.Popen[bytes]:
    """Start `ember mad run` with the package of a source tree.

    Args:
        tree: Folder with `ember_ml`.
        folder: Folder of the results.
        options: Arguments of the command.
    """
    environment = os.environ | {"PYTHONPATH": str(tree)} | dict.fromkeys(ONE_THREAD, "1")
    command = [sys.executable, "-m", "ember_ml", *options, "--workers", "1", "--out", str(folder)]
    return subprocess.Popen(command, env=environment, cwd=tree, stdout=subprocess.DEVNULL)


def outcome(folder: Path) -> Outcome:
    """Return the result of the only run of a folder."""
    with open(folder / "results.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    return Outcome(float(row["seconds"]), float(row["accuracy"]))


def compare(trees: tuple[Path, Path], options: list[str]) -> tuple[Outcome, Outcome]:
    """Return the results of a run in both trees."""
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place, name) for name in ("before", "now")]
        pairs = zip(trees, folders, strict=True)
        processes = [start(tree.resolve(), folder, options) for tree, folder in pairs]
        codes = [process.wait() for process in processes]
        if any(codes):
            raise SystemExit(f"ember {' '.join(options)} failed")
        before, now = map(outcome, folders)
    return before, now


def main() -> None:
    """Compare all runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, help="source tree to compare with")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--architectures", nargs="*", default=list(ARCHITECTURES))
    chosen = parser.parse_args()
    print(f"{chosen.backend}: seconds of a run before and now, ratio, accuracy before and now")
    totals = [0.0, 0.0]
    for architecture in chosen.architectures:
        for task in task_names(chosen.tasks):
            run = ["mad", "run", architecture, "--task", task, "--scale", chosen.scale]
            before, now = compare((chosen.before, HERE), ["--backend", chosen.backend, *run])
            totals = [totals[0] + before.seconds, totals[1] + now.seconds]
            print(
                f"{architecture:18} {task:26} {before.seconds:7.1f} {now.seconds:7.1f} "
                f"{now.seconds / before.seconds:6.2f} {100 * before.accuracy:8.1f} "
                f"{100 * now.accuracy:6.1f}",
                flush=True,
            )
    print(f"{'all':45} {totals[0]:7.1f} {totals[1]:7.1f} {totals[1] / totals[0]:6.2f}")


if __name__ == "__main__":
    main()
