"""The HTML report of a search."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
from pathlib import Path

import pytest

from ember_ml.training.tuning import TuningError
from ember_ml.training.tuning.folder import TuningFolder
from ember_ml.training.tuning.report import write_report
from ember_ml.training.tuning.report.axes import Scale
from ember_ml.training.tuning.report.progress import expected_best, running_best
from tests.unit.training.tuning.searches import EVIL, write_search

SECTIONS = ["best", "trials", "coordinates", "importance", "front", "history", "failed"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = write_search(tmp_path_factory.mktemp("search") / "s")
    write_report(path)
    return path


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="(\w+)">', page)


def test_the_page_has_every_section(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert sections(page) == SECTIONS
    assert EVIL not in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "24 of 32 trials (18 done, 3 pruned, 3 failed)" in page
    assert len(re.findall(r'class="line trial"', page)) == 18


def test_results(folder: Path) -> None:
    data = json.loads((folder / "results.json").read_text())
    done = [each for each in data["trials"] if each["state"] == "done"]
    best = max(done, key=lambda each: each["scores"]["val_accuracy"])
    assert data["best"] == best["id"]
    front = {
        each["id"]
        for each in done
        if not any(
            other["scores"]["val_accuracy"] > each["scores"]["val_accuracy"]
            and other["scores"]["parameters"] <= each["scores"]["parameters"]
            for other in done
        )
    }
    assert set(data["front"]) == front
    assert max(data["importance"], key=data["importance"].get) == "trainer.learning_rate"
    assert math.fsum(data["importance"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("trials", [0, 1, 2])
def test_a_search_that_has_just_begun(trials: int, tmp_path: Path) -> None:
    path = write_search(tmp_path / "s", trials, objectives=None)
    page = write_report(path).read_text()
    assert set(sections(page)) <= set(SECTIONS) - {"importance", "front", "failed"}
    assert "trials" in sections(page)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_the_expected_best_is_the_mean_over_all_orders(mode: str) -> None:
    scores = [3.0, 1.0, 4.0, 1.5, 9.0]
    curves = [running_best(order, mode) for order in itertools.permutations(scores)]
    mean = [statistics.fmean(column) for column in zip(*curves, strict=True)]
    assert expected_best(scores, mode) == pytest.approx(mean)


@pytest.mark.parametrize(
    "values", [(0.0, 1.0), (1e-6, 3e-6), (5.0, 5.0), (1e38, 1e38), (-7, 1234.5)]
)
def test_ticks(values: tuple[float, float]) -> None:
    scale = Scale.of(values)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in ticks)


def test_folders_that_are_no_search(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match=r"is not a search: it contains no tune\.json"):
        write_report(tmp_path)
    about = TuningFolder(folder).about()
    for content, message in [
        ("{", "cannot be read"),
        ("[]", "damaged"),
        ('{"format": 2}', "another version"),
        ('{"format": 1}', "no config"),
        (json.dumps(about | {"tune": {}}), "has no 'space'"),
    ]:
        (tmp_path / "tune.json").write_text(content)
        with pytest.raises(TuningError, match=message):
            write_report(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(TuningError, match="contains files but is not a search"):
        TuningFolder(tmp_path / "other").open(about)
    with pytest.raises(TuningError, match=r"another search.*\n.*backend is 'numpy', not 'torch'"):
        TuningFolder(folder).open(about | {"backend": "torch"})
