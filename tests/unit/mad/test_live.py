"""Display of a running sweep in the terminal."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from ember_ml.mad import SizesWarning, Sweep, cells
from ember_ml.mad.live import Progress, watch
from ember_ml.mad.pool import Event
from ember_ml.mad.run import Point
from ember_ml.mad.scores import overall
from tests.unit.mad.sweeps import result

THREE = ["attention+swiglu", "mamba+swiglu", "hyena+swiglu"]
LONG = [*THREE, ("a-name-of-20-letters", "gru+swiglu"), ("n" * 70, "min_gru+swiglu")]
WIDTHS = (200, 100, 80, 79, 60, 50, 40, 24)


def sweep_of(path, architectures=THREE, seeds=1, **options) -> Sweep:
    return Sweep(
        architectures, path / "s", scale="tiny", backend="numpy", seeds=range(seeds), **options
    )


def accuracy(at: int) -> float:
    """Return the accuracy of a run: all differ, and some are 100 %."""
    return min(1.0, 0.5 + 0.0123 * (at % 50))


def finished(sweep: Sweep, count: int | None = None) -> Progress:
    progress = Progress(sweep)
    for at, run in enumerate(sweep.runs[:count]):
        progress.update(Event(run, None))
        progress.update(Event(run, result(accuracy(at))))
    return progress


def point(run, share: float) -> Event:
    return Event(run, Point(int(share * run.steps), 1.0, 1.0, 1.0))


def drawn(progress: Progress, width: int, **options) -> str:
    console = Console(width=width, file=io.StringIO(), **options)
    console.print(progress.table())
    return console.file.getvalue()


def check(text: str, width: int) -> None:
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d", text))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("architectures", [THREE, LONG], ids=["three", "long"])
@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_every_number_is_whole(tmp_path, width, architectures, seeds):
    progress = finished(sweep_of(tmp_path, architectures, seeds))
    text = drawn(progress, width)
    check(text, width)
    found = cells(progress.done.values())
    assert {f"{100 * cell.accuracy.mean:.1f}" for cell in found} <= numbers(text)
    for each in progress.sweep.architectures:
        of_it = [cell for cell in found if cell.architecture == each.name]
        assert f"{100 * overall(of_it).mean:.1f}" in numbers(text)


@pytest.mark.parametrize("width", WIDTHS)
def test_runs_under_way_are_whole(tmp_path, width):
    sweep = sweep_of(tmp_path, LONG)
    progress = finished(sweep, 4)
    for run in sweep.runs[4:-2]:
        progress.update(point(run, 1.0))  # the widest: 100 @100%
    progress.update(Event(sweep.runs[-2], None))
    progress.update(Event(sweep.runs[-1], "an error"))
    text = drawn(progress, width)
    check(text, width)
    assert text.count("100 @100%") == len(sweep.runs) - 6
    assert "failed" in text


def test_a_terminal_of_80_columns_has_a_column_of_each_task(tmp_path):
    sweep = sweep_of(tmp_path, LONG[:4])
    progress = finished(sweep, 20)
    progress.update(point(sweep.runs[-1], 0.5))
    (head,) = [line for line in drawn(progress, 80).splitlines() if "architecture" in line]
    heads = ["compress", "fuzzy", "recall", "memorize", "noisy", "copy", "mean"]
    assert head.split() == ["architecture", *heads]
    assert "a-name-of-20-letters " in drawn(progress, 80)


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_names_the_task_of_each_number(tmp_path, width):
    progress = finished(sweep_of(tmp_path, seeds=3))
    text = drawn(progress, width)
    cell = cells(progress.done.values())[0]
    assert cell.task == "compression"
    assert f"  compress {shown(cell.accuracy)}" in text
    assert text.count("mean ") == 3


def shown(score) -> str:
    low, high = score.interval
    return f"{100 * score.mean:.1f} ({math.floor(100 * low)}-{math.ceil(100 * high)})"


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_where_there_is_room(tmp_path, seeds):
    progress = finished(sweep_of(tmp_path, seeds=seeds))
    whole = drawn(progress, 200)
    found = cells(progress.done.values())
    scores = [cell.accuracy for cell in found]
    scores += [overall([c for c in found if c.architecture == name]) for name in THREE]
    for each in scores:
        assert shown(each) in whole
    assert "(" not in drawn(progress, 75).partition("copy")[2]


def test_the_mean_of_tasks_is_over_seeds(tmp_path):
    sweep = sweep_of(tmp_path, ["gru"], 2, tasks=["memorization", "compression"])
    progress = Progress(sweep)
    for run in sweep.runs:
        up = 0.1 if "memorization" in run.task.component else -0.1
        progress.update(Event(run, result(0.5 + up * run.seed)))
    found = overall(cells(progress.done.values()))
    assert (found.mean, found.interval, found.seeds) == (
        pytest.approx(0.5),
        pytest.approx((0.5, 0.5)),  # what one seed gains on a task it loses on the other
        2,
    )


def test_brackets_are_not_markup(tmp_path):
    progress = finished(sweep_of(tmp_path, ["attention[num_heads=2]+swiglu"]))
    assert "attention[num_heads=2]+swiglu" in drawn(progress, 200)
    assert "attention[num_heads=2]+swiglu" in drawn(progress, 40)


def watched(sweep, width=100, **outcome) -> str:
    """Return the output of a sweep whose runs all have the given accuracy."""

    def pool(runs):
        for run in runs:
            yield Event(run, None)
            yield Event(run, result(outcome[run.architecture.partition("+")[0]]))

    console = Console(width=width, file=io.StringIO())
    watch(sweep, pool, console)
    return " ".join(console.file.getvalue().split())


def test_one_seed_and_ties_are_reported(tmp_path):
    """With one seed, two close architectures are tied, and the limits of one seed are stated."""
    scores = {"attention": 0.9, "mamba": 0.89, "hyena": 0.1}
    text = watched(sweep_of(tmp_path), **scores)
    assert "tied: attention+swiglu and mamba+swiglu cannot be told apart" in text
    assert "and hyena+swiglu cannot be told apart" not in text
    assert "one seed: the intervals cover the test examples alone" in text
    several = watched(sweep_of(tmp_path / "several", seeds=3), **scores)
    assert "one seed" not in several


def test_unequal_sizes_are_reported_by_default(tmp_path):
    sweep = sweep_of(tmp_path, ["gru", "gru+swiglu+gru+swiglu+gru+swiglu+gru+swiglu"])
    text = watched(sweep, gru=0.5)
    assert text.count("warning: unequal sizes: the parameter counts differ by a factor of") == 2
    with pytest.warns(SizesWarning, match="unequal sizes"):
        sweep_of(tmp_path, ["gru", "lstm+swiglu"]).run(lambda runs: iter(()))
    assert sweep_of(tmp_path, ["gru"]).size_warnings == []


@pytest.mark.parametrize("width", [80, 40])
def test_watch_in_a_terminal(tmp_path, width):
    sweep = sweep_of(tmp_path, THREE[:2])

    def pool(runs):
        for run in runs:
            yield Event(run, None)
            yield point(run, 0.5)
            yield Event(run, result(0.75))

    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    watch(sweep, pool, console)
    last = console.file.getvalue().rpartition("MAD tiny")[2]
    check(re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", last), width)
    assert last.count("75.0") == 2 * (6 + 1)
