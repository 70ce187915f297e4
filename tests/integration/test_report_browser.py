"""The report of a sweep in a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from ember_ml.mad.architecture import Architecture, architecture
from ember_ml.mad.report import write_report
from ember_ml.mad.scores import task_of
from ember_ml.training.tuning.report import write_report as write_tuning_report
from tests.integration.chromium import Browser, find
from tests.unit.mad.sweeps import HARDER, result, write_sweep
from tests.unit.training.tuning.searches import write_search

EVIL = "<script>document.title = 'broken'</script>"
LONG = "a-rather-long-name-of-an-architecture-that-does-not-fit-a-phone"
ARCHITECTURES = (
    architecture("attention+swiglu"),
    architecture("hyena+swiglu"),
    architecture("mamba+swiglu"),
    Architecture(LONG, "(lru+swiglu)x2"),
    Architecture(EVIL, "(s4d+swiglu)x2"),
)
TASKS = ("compression", "in-context-recall", "memorization")
ORDER = "Array.from(document.querySelectorAll('.heat tbody tr'), r => r.cells[0].textContent)"
SORTS = "Array.from(document.querySelectorAll('.heat thead th'), h => h.getAttribute('aria-sort'))"
EDGES = """(() => {
  const box = document.querySelector(".box");
  const name = box.querySelector("tbody th");
  return [getComputedStyle(box).maskImage !== "none", getComputedStyle(name).boxShadow !== "none"];
})()"""
"""Whether the first table fades out at the right, and whether its names throw a shadow."""
FRAME = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until the page has been drawn."""
WIDE = (
    "Array.from(document.querySelectorAll('.box'))"
    ".filter(box => box.scrollWidth > box.clientWidth).length"
)
HEAD = ".heat thead th:nth-child({}) button"


def outcome(run):
    """Return results that get worse with the architecture's index; on compression, better."""
    place = [each.name for each in ARCHITECTURES].index(run.architecture)
    if run.architecture == EVIL and task_of(run) == "memorization":
        return "ValueError: " + "no" * 200
    good, bad = 0.9 - 0.15 * place, 0.05 + 0.02 * place
    return result(bad if task_of(run) == "compression" else good, macro=0.1 + 0.15 * place)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sweep")
    return write_report(write_sweep(path, outcome, ARCHITECTURES, TASKS, scale=HARDER)).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find()
    if program is None:
        why = "Chromium is not installed (on Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    found = Browser(program, tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_page(browser: Browser, page: str, width: int, scheme: str) -> None:
    browser.open(page, width, scheme=scheme)
    shown = "Array.from(document.querySelectorAll('.heat td span')).filter(s => s.offsetWidth)"
    assert browser.run(f"{shown}.length") == 5 * len(TASKS) - 1 + 4  # one failed, and has no mean
    assert "90.0" in browser.run(f"{shown}[0].textContent + {shown}[1].textContent")
    assert browser.run("document.title").startswith("MAD")
    assert browser.run("document.scrollingElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('figure svg path.line').length") >= 30
    assert browser.complaints() == []
    assert browser.requests() == [page]


def test_dark_is_dark(browser: Browser, page: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.open(page, 1200, scheme=scheme)
        ground = browser.run("getComputedStyle(document.body).backgroundColor")
        grounds.append(sum(int(part) for part in ground[4:-1].split(",")))
    assert grounds[0] > 600 > 150 > grounds[1]


def test_wide_parts_scroll_in_their_boxes(browser: Browser, page: str) -> None:
    browser.open(page, 380)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert browser.run("document.scrollingElement.scrollWidth") <= 380
    assert browser.run(WIDE) >= 2
    assert browser.run("document.querySelectorAll('pre').length") > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_edges_show_that_there_is_more(browser: Browser, page: str, scheme: str) -> None:
    browser.open(page, 390, scheme=scheme)
    browser.run(FRAME)
    assert browser.run(EDGES) == [True, False]
    browser.run("document.querySelector('.box').scrollLeft = 60")
    browser.run(FRAME)
    assert browser.run(EDGES) == [True, True]
    browser.run("document.querySelector('.box').scrollLeft = 1e4")
    browser.run(FRAME)
    assert browser.run(EDGES) == [False, True]
    assert browser.complaints() == []


def test_edges_follow_the_width(browser: Browser, page: str) -> None:
    browser.open(page, 1280)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    browser.run(FRAME)
    faded = "document.querySelectorAll('.more-right, .more-left').length"
    assert browser.run(faded) == 0
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.run(FRAME)
    assert browser.run(faded) == browser.run(WIDE) >= 2


def test_sorting(browser: Browser, page: str) -> None:
    browser.open(page, 1200)
    column = 2 + TASKS.index("compression")
    best = browser.run(ORDER)
    browser.click(HEAD.format(column))
    assert browser.run(ORDER) == [each.name for each in reversed(ARCHITECTURES)] != best
    assert browser.run(SORTS)[column - 1] == "descending"
    browser.click(HEAD.format(column))
    assert browser.run(ORDER) == [each.name for each in ARCHITECTURES]
    assert browser.run(SORTS) == [
        "ascending" if at == column - 1 else "none" for at in range(len(TASKS) + 2)
    ]
    browser.click(HEAD.format(1))
    assert browser.run(ORDER) == [EVIL, LONG, "attention+swiglu", "hyena+swiglu", "mamba+swiglu"]
    assert browser.complaints() == []


def test_sorting_by_keyboard(browser: Browser, page: str) -> None:
    browser.open(page, 1200)
    column = 2 + TASKS.index("memorization")
    browser.run(f"document.querySelector({HEAD.format(column - 1)!r}).focus()")
    browser.press("Tab", "Tab", 9)
    browser.press("Enter", "Enter", 13, "\r")
    browser.press("Enter", "Enter", 13, "\r")
    assert browser.run(SORTS)[column - 1] == "ascending"
    found = browser.run(ORDER)
    assert found == [LONG, "mamba+swiglu", "hyena+swiglu", "attention+swiglu", EVIL]


def test_averages_switch(browser: Browser, page: str) -> None:
    browser.open(page, 1200)
    first = "Array.from(document.querySelectorAll('.ranking .name')).find(e => e.offsetWidth)"
    before = browser.run(f"{first}.textContent")
    browser.click(HEAD.format(2 + TASKS.index("in-context-recall")))
    by_micro = browser.run(ORDER)
    browser.click("input[value=macro]")
    assert browser.run(f"{first}.textContent") != before
    assert browser.run(ORDER) == by_micro[::-1]


def test_legend_brings_lines_forward(browser: Browser, page: str) -> None:
    browser.open(page, 1200)
    lit = "document.querySelectorAll('figure g[data-line]:not(.dim)').length"
    every = browser.run(lit)
    browser.click(".legend button")
    assert 0 < browser.run(lit) < every
    assert browser.run("document.querySelector('.legend button').ariaPressed") == "true"
    browser.click(".legend button")
    assert browser.run(lit) == every


def test_numbers_can_be_saved(browser: Browser, page: str, tmp_path: Path) -> None:
    browser.open(page, 1200)
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.click("#save")
    browser.wait("Page.downloadProgress", state="completed")
    saved = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    written = Path(url2pathname(urlsplit(page).path)).with_name("results.json")
    assert saved == json.loads(written.read_text(encoding="utf-8"))
    assert browser.complaints() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_print_keeps_colors_and_columns(browser: Browser, page: str, scheme: str) -> None:
    """On a sheet of A4, on white: no table is cut off, bars and plots stay in their columns."""
    browser.open(page, 703, scheme=scheme)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", media="print", features=[feature])
    try:
        browser.run(FRAME)
        assert browser.run("document.scrollingElement.scrollWidth") <= 703
        assert browser.run(WIDE) == 0
        style = "getComputedStyle(document.querySelector('{}'))"
        assert browser.run(style.format(".heat td span") + ".printColorAdjust") == "exact"
        assert browser.run(style.format(".heat td span") + ".backgroundColor") != "rgba(0, 0, 0, 0)"
        columns = browser.run(style.format(".plots") + ".gridTemplateColumns")
        assert len(columns.split()) == 3
        assert len(browser.run(style.format(".ranking li") + ".gridTemplateColumns").split()) == 5
        assert browser.run(style.format("body") + ".color") == "rgb(26, 29, 35)"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@pytest.fixture(scope="module")
def search_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_tuning_report(write_search(tmp_path_factory.mktemp("search") / "s")).as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_report_of_a_search(browser: Browser, search_page: str, width: int, scheme: str) -> None:
    browser.open(search_page, width, scheme=scheme)
    assert browser.run("document.title") == "Search for hyperparameters"
    assert browser.run("document.scrollingElement.scrollWidth") <= width
    assert browser.run("document.querySelectorAll('#coordinates path.trial').length") == 18
    assert browser.run("document.querySelectorAll('#front circle').length") == 18
    colors = "new Set(Array.from(document.querySelectorAll('path.trial'), p => getComputedStyle(p)"
    assert browser.run(f"{colors}.stroke)).size") > 5
    order = "Array.from(document.querySelectorAll('#trials tbody tr'), r => r.cells[5].textContent)"
    browser.click("#trials thead th:nth-child(6) button")
    rates = [float(each) for each in browser.run(order)]
    assert rates == sorted(rates, reverse=True)
    assert browser.complaints() == []
    assert browser.requests() == [search_page]
