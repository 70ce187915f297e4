"""Display of a running sweep in the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from ember_ml.mad import Sweep, cells
from ember_ml.mad.live import Pace, Progress, watch
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
    mean, half = 100 * cell.accuracy.mean, 100 * (cell.accuracy.interval or 0.0)
    assert cell.task == "compression"
    assert f"  compress {mean:.1f}\N{PLUS-MINUS SIGN}{half:.1f}" in text
    assert text.count("mean ") == 3


def test_intervals_where_there_is_room(tmp_path):
    progress = finished(sweep_of(tmp_path, seeds=3))
    whole = drawn(progress, 200)
    found = cells(progress.done.values())
    scores = [cell.accuracy for cell in found]
    scores += [overall([c for c in found if c.architecture == name]) for name in THREE]
    for each in scores:
        assert each.interval is not None
        half = f"{100 * each.interval:.1f}"
        assert f" {100 * each.mean:.1f}\N{PLUS-MINUS SIGN}{half}" in whole
    assert "\N{PLUS-MINUS SIGN}" not in drawn(progress, 70)
    assert "\N{PLUS-MINUS SIGN}" not in drawn(finished(sweep_of(tmp_path)), 200)


def test_intervals_in_ascii(tmp_path):
    progress = finished(sweep_of(tmp_path, seeds=2))
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding="ascii")
    Console(width=200, file=file).print(progress.table())
    file.flush()
    assert b"+-" in written.getvalue()


def test_the_mean_of_tasks_is_over_seeds(tmp_path):
    sweep = sweep_of(tmp_path, ["gru"], 2, tasks=["memorization", "compression"])
    progress = Progress(sweep)
    for run in sweep.runs:
        up = 0.1 if "memorization" in run.task.component else -0.1
        progress.update(Event(run, result(0.5 + up * run.seed)))
    found = overall(cells(progress.done.values()))
    assert (found.mean, found.interval, found.seeds) == (
        pytest.approx(0.5),
        pytest.approx(0.0, abs=1e-9),  # what one seed gains on a task it loses on the other
        2,
    )


def test_brackets_are_no_markup(tmp_path):
    progress = finished(sweep_of(tmp_path, ["attention[num_heads=2]+swiglu"]))
    assert "attention[num_heads=2]+swiglu" in drawn(progress, 200)
    assert "attention[num_heads=2]+swiglu" in drawn(progress, 40)


class Clock:
    """Clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("ember_ml.mad.live.time.monotonic", lambda: self.now)


def test_the_start_of_workers_is_not_counted(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    sweep = sweep_of(tmp_path, seeds=10)
    progress = Progress(sweep)
    assert len(sweep.runs) == 180
    clock.now += 30  # until a cluster is there
    for run in sweep.runs[:2]:
        progress.update(Event(run, None))
    clock.now += 20  # until the workers have a backend
    for run in sweep.runs[:2]:
        progress.update(point(run, 0.5))
        assert progress.seconds_left() is None
    clock.now += 1
    progress.update(point(sweep.runs[0], 1.0))
    progress.update(Event(sweep.runs[0], result(0.5)))
    assert progress.seconds_left() == pytest.approx(1.0 * (180 - 1.5) / 1.0)  # a run in a second
    assert "about 3 min left" in drawn(progress, 100)


def test_what_was_done_before_says_nothing_of_the_pace(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    pace = Pace(0.5)
    pace.update(0.5, 1)
    pace.update(0.6, 1)
    assert pace.seconds_left() is None
    clock.now += 10
    pace.update(0.7, 1)
    assert pace.seconds_left() == pytest.approx(30.0)


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
