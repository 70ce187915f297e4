"""The report of a sweep."""

from __future__ import annotations

import csv
import itertools
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ember_ml.mad import SweepError
from ember_ml.mad.architecture import Architecture, architecture
from ember_ml.mad.report import write_report
from ember_ml.mad.report.difficulty import curves, variables
from ember_ml.mad.report.gather import gather
from ember_ml.mad.report.published import PUBLISHED, counterpart
from ember_ml.mad.scales import SCALES
from ember_ml.mad.scores import task_of
from ember_ml.mad.store import Store
from ember_ml.registry import get
from ember_ml.training.reports.colors import contrast, luminance, ramp
from tests.unit.mad.sweeps import HARDER, TASKS, THREE, result, write_sweep

VOID = {"meta", "link", "input"}
EVIL = """<script>alert(1)</script>"'&</style><img src=x onerror=alert(1)>"""


class Page(HTMLParser):
    """Parsed page: its elements, and the text of each kind."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def text(self, *inside: str) -> str:
        """Return the text in nested elements."""
        return " ".join(t for where, t in self.texts if all(tag in where for tag in inside))

    def ids(self) -> set[str | None]:
        return {attributes.get("id") for tag, attributes in self.elements if tag == "section"}


def accuracy_of(run) -> float:
    """Return a different accuracy for each architecture, task and seed."""
    names = [each.name for each in THREE]
    return 0.9 - 0.2 * names.index(run.architecture) - 0.05 * run.seed**2 - len(task_of(run)) / 100


def outcome(run):
    return result(accuracy_of(run))


def test_files(tmp_path: Path) -> None:
    path = write_report(write_sweep(tmp_path, outcome))
    assert path == tmp_path / "report.html"
    page = Page(path)
    assert page.open == []
    assert "3 architectures on 2 tasks at the scale mini" in page.text("header")
    assert "6 of 6 runs done" in page.text("header")
    assert page.ids() == {"ranking", "tasks", "curves", "costs", "agreement", "configs"}
    with open(tmp_path / "results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert {row["status"] for row in rows} == {"done"}
    found = {(row["architecture"], row["task"]): float(row["accuracy"]) for row in rows}
    assert found["hyena+swiglu", "compression"] == pytest.approx(0.9 - 0.2 - 0.11)


def test_scores_with_intervals(tmp_path: Path) -> None:
    path = write_report(write_sweep(tmp_path, outcome, seeds=(0, 1, 2)))
    values = [0.7 - 0.12 - 0.05 * seed**2 for seed in range(3)]
    data = json.loads((tmp_path / "results.json").read_text())
    cell = next(
        each
        for each in data["scores"]
        if (each["architecture"], each["task"]) == ("hyena+swiglu", "memorization")
    )
    assert cell["micro"]["mean"] == pytest.approx(sum(values) / 3)
    assert cell["micro"]["interval"] == pytest.approx([min(values), max(values)])
    assert cell["macro"]["mean"] == pytest.approx(sum(values) / 6)
    page = path.read_text(encoding="utf-8")
    low, mean, high = 100 * min(values), 100 * sum(values) / 3, 100 * max(values)
    assert f"{mean:.1f} % ({low:.1f}\N{EN DASH}{high:.1f} %, 3 seeds)" in page
    assert "one seed" not in page


def test_whiskers_and_ties(tmp_path: Path) -> None:
    """Bars have whiskers; architectures that cannot be told apart share a range of ranks."""

    def close(run):
        mixer = run.architecture.partition("+")[0]
        base = {"attention": 0.8, "hyena": 0.2}.get(mixer, 0.8)
        return result(base + 0.01 * run.seed * (-1 if mixer == "mamba" else 1))

    path = write_report(write_sweep(tmp_path, close, seeds=(0, 1, 2)))
    page = Page(path)
    ranks = [text for where, text in page.texts if where[-1:] == ("span",) and "ol" in where]
    assert ranks.count("1\N{EN DASH}2") == 4  # two architectures, in both averages
    assert ranks.count("3") == 2
    tied = [text for where, text in page.texts if where[-1:] == ("small",) and "tied" in text]
    assert tied[:2] == ["tied with mamba+swiglu", "tied with attention+swiglu"]
    whiskers = [attributes["style"] for tag, attributes in page.elements if tag == "b"]
    assert whiskers[0] == "left:80.00%;right:18.00%"
    data = json.loads((tmp_path / "results.json").read_text())
    first, second, last = data["ranking"]["micro"]
    assert (first["rank"], first["tied_with"]) == ([1, 2], ["mamba+swiglu"])
    assert (last["rank"], last["tied_with"]) == ([3, 3], [])
    assert second["interval"] == pytest.approx([0.78, 0.8])


def test_one_seed_is_mentioned(tmp_path: Path) -> None:
    page = Page(write_report(write_sweep(tmp_path, outcome)))
    assert "There is one seed." in page.text("section", "strong")
    assert "over the test examples alone" in page.text("section", "p")


@pytest.mark.parametrize("scale", [SCALES["mini"], HARDER], ids=["mini", "harder"])
def test_curves_are_means_of_all_seeds(tmp_path: Path, scale) -> None:
    """Every architecture has a curve, also one whose first seed has no result yet."""

    def late(run):
        if (run.architecture, run.seed) == ("mamba+swiglu", 0):
            return None
        return result(0.2 + 0.1 * run.seed)

    folder = write_sweep(tmp_path, late, tasks=["memorization"], seeds=(0, 1, 2), scale=scale)
    report = gather(Store(folder))
    lines = curves(report, "memorization")
    assert sorted(lines) == sorted(each.name for each in THREE)
    assert list(lines["hyena+swiglu"].seeds) == [0, 1, 2]
    assert list(lines["mamba+swiglu"].seeds) == [1, 2]
    assert [y for _, y in lines["hyena+swiglu"].mean] == pytest.approx([0.1, 0.2, 0.3])
    assert lines["hyena+swiglu"].low[-1] == pytest.approx((30, 0.2))
    assert lines["hyena+swiglu"].high[-1] == pytest.approx((30, 0.4))
    assert lines["mamba+swiglu"].mean[-1] == pytest.approx((30, 0.35))
    page = Page(write_report(folder))
    kinds = [attributes.get("class") for tag, attributes in page.elements if tag == "path"]
    figures = 1 + len(variables(report))
    assert (kinds.count("band"), kinds.count("seed")) == (3 * figures, 8 * figures)


def test_difficulty_is_the_mean_of_all_seeds(tmp_path: Path) -> None:
    def sized(run):
        return result(1 / run.task.vocab_size + 0.1 * run.seed)

    path = write_sweep(tmp_path, sized, tasks=["memorization"], seeds=(0, 1), scale=HARDER)
    (found,) = variables(gather(Store(path)))
    line = found.lines["hyena+swiglu"]
    sizes = (256, 512, 1024, 2048, 4096, 8192)
    assert [x for x, _ in line.mean] == list(sizes)
    assert [y for _, y in line.mean] == pytest.approx([1 / size + 0.05 for size in sizes])
    assert [y for _, y in line.seeds[1]] == pytest.approx([1 / size + 0.1 for size in sizes])


def test_ranking(tmp_path: Path) -> None:
    def other(run):
        return result(accuracy_of(run), macro=1 - accuracy_of(run))

    write_report(write_sweep(tmp_path, other))
    found = json.loads((tmp_path / "results.json").read_text())["ranking"]
    names = [each.name for each in THREE]
    assert [each["architecture"] for each in found["micro"]] == names
    assert [each["architecture"] for each in found["macro"]] == names[::-1]
    assert found["micro"][0]["mean"] == pytest.approx((0.9 - 0.12 + 0.9 - 0.11) / 2)


def test_ranking_has_the_tasks_of_all(tmp_path: Path) -> None:
    def some(run):
        late = run.architecture == "mamba+swiglu" and task_of(run) == "compression"
        return None if late else outcome(run)

    page = Page(write_report(write_sweep(tmp_path, some)))
    assert "over the task memorization for which every" in page.text("section", "p")
    assert "mamba+swiglu on compression: 1 run" in page.text("section", "li")
    assert "5 of 6 runs done" in page.text("header")


def test_failed_runs_show_their_errors(tmp_path: Path) -> None:
    def failing(run):
        return "MemoryError: 4 GB & more" if run.architecture == "hyena+swiglu" else outcome(run)

    page = Page(write_report(write_sweep(tmp_path, failing)))
    assert page.text("section", "pre").count("MemoryError: 4 GB & more") == 2
    assert "failed" in page.text("td")
    assert "4 of 6 runs done, 2 failed" in page.text("header")
    assert "missing" not in page.ids()
    assert json.loads((tmp_path / "results.json").read_text())["counts"]["failed"] == 2


def test_empty_sweep(tmp_path: Path) -> None:
    page = Page(write_report(write_sweep(tmp_path, lambda run: None)))
    assert "No results yet" in page.text("p")
    assert json.loads((tmp_path / "results.json").read_text())["runs"] == []


def test_what_is_planned_and_not_begun_is_missing(tmp_path: Path) -> None:
    def some(run):
        return outcome(run) if (run.architecture, run.seed) == (THREE[0].name, 0) else None

    report = gather(Store(write_sweep(tmp_path, some, tasks=["compression"], seeds=[0, 1])))
    assert report.architectures == sorted(each.name for each in THREE)
    assert (len(report.done), len(report.missing)) == (1, 5)
    assert "1 of 6 runs done" in Page(write_report(tmp_path)).text("header")


def test_missing_of_a_scale_of_ones_own(tmp_path: Path) -> None:
    scale = HARDER._replace(name="tiny", hidden_size=16)

    def some(run):
        return None if (run.architecture, run.task.seq_len) == (THREE[0].name, 64) else outcome(run)

    report = gather(Store(write_sweep(tmp_path, some, tasks=["compression"], scale=scale)))
    (run,) = report.missing
    assert (run.architecture, run.task.seq_len) == (THREE[0].name, 64)
    assert report.is_partial(THREE[0].name, "compression")


def test_folder_without_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="no sweep"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_sweep_is_markup(tmp_path: Path) -> None:
    names = [Architecture(EVIL, "(attention+swiglu)x2"), *THREE[1:]]

    def bad(run):
        failing = run.architecture == EVIL and task_of(run) == "compression"
        return EVIL if failing else result(0.5)

    path = write_report(write_sweep(tmp_path, bad, architectures=names))
    page = Page(path)
    assert page.open == []
    assert not [tag for tag, _ in page.elements if tag == "img"]
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [attributes.get("type") for attributes in scripts] == ["application/json", None]
    assert not [name for _, attributes in page.elements for name in attributes if name[:2] == "on"]
    assert page.text("tbody", "th").count(EVIL) >= 2
    assert EVIL in page.text("pre")
    assert EVIL in page.text("svg", "title")
    assert "<" not in page.text("script").partition('"use strict"')[0]


def test_page_stands_alone(tmp_path: Path) -> None:
    path = write_report(write_sweep(tmp_path, outcome, scale=HARDER))
    for tag, attributes in Page(path).elements:
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith(("#", "data:")), tag
    whole = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in whole
    assert "@import" not in whole
    assert "url(" not in whole


def test_numbers_in_the_page_are_those_of_the_file(tmp_path: Path) -> None:
    path = write_report(write_sweep(tmp_path, lambda run: result(0.5, loss=math.nan)))
    page = Page(path)
    embedded = next(text for where, text in page.texts if "script" in where)
    strict = json.loads(embedded, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert strict == json.loads((tmp_path / "results.json").read_text())
    assert strict["runs"][0]["result"]["loss"] is None


def test_difficulty_has_every_variable(tmp_path: Path) -> None:
    tasks = ("memorization", "selective-copying")

    def sized(run):
        return result(1 / run.task.vocab_size)

    path = write_sweep(tmp_path, sized, tasks=tasks, scale=HARDER)
    found = variables(gather(Store(path)))
    expected = [(task, name) for task in tasks for name in get(task, "tasks").target.harder]
    assert sorted((each.task, each.name) for each in found) == sorted(expected)
    line = next(each for each in found if each.task == "memorization").lines["hyena+swiglu"]
    assert line.mean == [(size, 1 / size) for size in (256, 512, 1024, 2048, 4096, 8192)]
    lengths = next(each for each in found if each.name == "seq_len").lines["hyena+swiglu"]
    assert [x for x, _ in lengths.mean] == [256, 512, 1024]
    page = Page(write_report(path))
    assert len([tag for tag, _ in page.elements if tag == "figure"]) == 2 + len(expected)


def test_curves_are_of_the_default_size(tmp_path: Path) -> None:
    def sized(run):
        return result(0.75 if run.task.vocab_size == 256 else 0.25)

    write = write_sweep(tmp_path, sized, tasks=["memorization"], scale=HARDER)
    titles = Page(write_report(write)).text("figure", "title")
    assert "hyena+swiglu: 75.0 % at training step 30" in titles
    assert "hyena+swiglu: 25.0 % at training step 30" not in titles


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("attention+swiglu", "Transformer"),
        ("mh-attention mlp", "Transformer"),
        ("(mh-hyena+moe-mlp)x2", "MH-Hyena"),
        ("gla[num_heads=1]+swiglu", "GLA"),
        ("delta-net+swiglu", "DeltaNet"),
        ("hyena+swiglu+attention+swiglu", None),
        ("lru+swiglu", None),
        ("swiglu", None),
    ],
)
def test_counterpart(pattern: str, name: str | None) -> None:
    assert counterpart(architecture(pattern).layers) == name


def test_agreement(tmp_path: Path) -> None:
    patterns = [*THREE, architecture("delta-net+swiglu"), architecture("lru+swiglu")]
    here = {"attention": 0.3, "hyena": 0.5, "mamba": 0.4, "delta-net": 0.45, "lru": 0.9}

    def given(run):
        return result(1.0, macro=here[run.architecture.partition("+")[0]])

    path = write_sweep(tmp_path, given, architectures=patterns)
    text = Page(write_report(path)).text("section", "td")
    names = ("Transformer", "Hyena", "Mamba", "DeltaNet")
    for task in TASKS:
        published = [PUBLISHED[name][task] for name in names]
        expected = stats.spearmanr(list(here.values())[:4], published).statistic
        assert f"{expected:.2f}".replace("-", "\N{MINUS SIGN}") in text
        orders = itertools.permutations(list(here.values())[:4])
        found = [stats.spearmanr(order, published).statistic for order in orders]
        assert f"{100 * np.mean(np.array(found) > expected - 1e-9):.1f} %" in text
    assert "agreement" not in Page(write_report(path, published=False)).ids()


def test_two_counterparts_are_too_few(tmp_path: Path) -> None:
    path = write_sweep(tmp_path, outcome, architectures=THREE[:2])
    assert "agreement" not in Page(write_report(path)).ids()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_heat_can_be_read_and_ordered(scheme: str) -> None:
    colors = ramp(scheme)
    assert min(contrast(ink, ground) for ground, ink in colors) >= 4.5
    lights = [luminance(ground) for ground, _ in colors]
    assert lights == sorted(lights, reverse=scheme == "light")


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_unequal_sizes_cause_a_warning(tmp_path: Path) -> None:
    def sized(run):
        return result(0.5)._replace(parameters=1000 + 300 * (run.architecture[0] == "m"))

    path = write_report(write_sweep(tmp_path, sized))
    assert "unequal sizes: the parameter counts differ by a factor of up to 1.30" in Page(
        path
    ).text("header", "p")
    assert len(json.loads((tmp_path / "results.json").read_text())["warnings"]) == 1
    write_report(write_sweep(tmp_path / "equal", outcome))
    assert json.loads((tmp_path / "equal" / "results.json").read_text())["warnings"] == []


def test_published_scores_name_their_source(tmp_path: Path) -> None:
    notes = Page(write_report(write_sweep(tmp_path, outcome))).text("section", "p")
    assert "arXiv 2403.17844" in notes
    assert "arXiv 2406.06484" in notes
