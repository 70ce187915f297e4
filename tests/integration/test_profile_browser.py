"""The page of `ember profile` in a browser."""

from __future__ import annotations

import pytest

from ember_ml import nn, ops
from ember_ml.backend import use_backend
from ember_ml.training import ProfileOptions, Trainer
from tests.integration.chromium import Browser
from tests.integration.test_report_browser import browser as browser

NAMES = "Array.from(document.querySelectorAll('#ops tbody th'), e => e.textContent)"
DATA = "JSON.parse(document.getElementById('results').textContent)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("profile")
    with use_backend("numpy"):
        tokens = ops.zeros((8, 6), dtype="int64")
        model = nn.models.LanguageModel("mamba swiglu", 8, 16)
        trainer = Trainer(model, progress=False, profile=ProfileOptions(1, 0, folder))
        trainer.fit((tokens, tokens), steps=4, batch_size=4)
    return (folder / "profile.html").as_uri()


@pytest.mark.parametrize("width", [1200, 380])
def test_page(browser: Browser, page: str, width: int) -> None:
    browser.open(page, width)
    assert browser.run("document.title") == "Profile of LanguageModel"
    assert browser.run("document.scrollingElement.scrollWidth") <= width
    data = browser.run(DATA)
    assert browser.run(NAMES) == [row["name"] for row in data["ops"]]
    bars = "document.querySelectorAll('#groups .ranking li').length"
    assert browser.run(bars) == len(data["groups"])
    browser.run("document.querySelector('#ops thead th:first-child button').click()")
    assert browser.run(NAMES) == sorted(row["name"] for row in data["ops"])
    assert browser.complaints() == []
    assert browser.requests() == [page]
