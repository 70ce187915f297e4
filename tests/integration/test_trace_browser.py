"""The page of `ember trace` in a browser: a click shows the causes that Python computes."""

from __future__ import annotations

import pytest

from ember_ml.backend import use_backend
from ember_ml.nn import tensor
from ember_ml.training import tracing
from tests.integration.chromium import Browser
from tests.integration.test_report_browser import browser as browser
from tests.unit.training.spiking_model import spike_input, spiking_model, targets

LIT = "Array.from(document.querySelectorAll('.raster .{}'), e => e.dataset.spike)"
DATA = "JSON.parse(document.getElementById('results').textContent)"
LISTED = (
    "Array.from(document.querySelectorAll('#chosen tr'), "
    "r => Array.from(r.cells, c => c.textContent))"
)
MINUS = chr(0x2212)


@pytest.fixture(scope="module")
def recorded():
    with use_backend("numpy"):
        x, y = tensor.array(spike_input()), tensor.array(targets())
        return tracing.trace(spiking_model(), x, y)


@pytest.fixture(scope="module")
def page(recorded, tmp_path_factory) -> str:
    return tracing.write_trace(recorded, tmp_path_factory.mktemp("trace") / "t.html", 1).as_uri()


def place(data, event) -> int:
    """Return the number of a spike on the page."""
    names = [layer["name"] for layer in data["layers"]]
    return data["spikes"].index([names.index(event.layer), event.time, event.neuron])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_page(browser: Browser, page: str, recorded, width: int, scheme: str) -> None:
    browser.open(page, width, scheme=scheme)
    assert browser.run("document.title") == "Spikes and their causes"
    assert browser.run("document.scrollingElement.scrollWidth") <= width
    data = browser.run(DATA)
    assert [layer["name"] for layer in data["layers"]] == ["1.input", "1", "3"]
    count = len(recorded.context.spikes(batch=1)) + int(spike_input()[1].sum())
    assert browser.run("document.querySelectorAll('.raster .spike').length") == count
    assert browser.run("document.querySelectorAll('.space .neuron').length") == 12
    assert browser.complaints() == []
    assert browser.requests() == [page]


def test_a_click_lights_the_causes(browser: Browser, page: str, recorded) -> None:
    browser.open(page, 1200)
    data = browser.run(DATA)
    context = recorded.context
    for event in (context.spikes("1", batch=1)[-3], context.spikes("3", batch=1)[5]):
        before = set(browser.run(LIT.format("lit")))
        browser.click(f".raster [data-spike='{place(data, event)}']")
        causes = context.causes(event, top=24)
        expected = {str(place(data, cause.event)) for cause in causes}
        assert set(browser.run(LIT.format("lit"))) == expected != before
        for sign, kind in ((1, "excites"), (-1, "inhibits")):
            some = {str(place(data, c.event)) for c in causes if sign * c.contribution > 0}
            assert set(browser.run(LIT.format(f"lit.{kind}"))) == some
        rows = browser.run(LISTED)
        names = [f"{c.event.layer}, neuron {c.event.neuron}, step {c.event.time}" for c in causes]
        assert [row[0] for row in rows[: len(names)]] == names
        shown = [float(row[1].replace(MINUS, "-")) for row in rows[: len(names)]]
        assert shown == pytest.approx([cause.contribution for cause in causes], rel=1e-3)
        assert float(rows[-1][1]) == pytest.approx(causes.voltage, rel=1e-3)
        neurons = {c.event.neuron for c in causes if c.event.layer == "1"}
        if event.layer == "1":
            neurons.discard(event.neuron)
        lit = (
            "Array.from(document.querySelectorAll('.space .neuron.lit title'), e => e.textContent)"
        )
        assert set(browser.run(lit)) == {f"neuron {neuron}" for neuron in neurons}
    assert browser.complaints() == []


def test_rows_and_keys_and_depth(browser: Browser, page: str, recorded) -> None:
    browser.open(page, 1200)
    data = browser.run(DATA)
    event = recorded.context.spikes("3", batch=1)[-1]
    browser.click(f".raster [data-spike='{place(data, event)}']")
    first = next(iter(recorded.context.causes(event)))
    browser.click("#chosen tr[data-spike]")
    title = "document.querySelector('#chosen h3').textContent"
    assert browser.run(title) == f"1, neuron {first.event.neuron}, step {first.event.time}"
    browser.run("document.querySelector('.rasters').focus()")
    browser.press("ArrowLeft", "ArrowLeft", 37)
    earlier = [
        one.time
        for one in recorded.context.spikes("1", batch=1, neuron=first.event.neuron)
        if one.time < first.event.time
    ]
    assert browser.run(title) == f"1, neuron {first.event.neuron}, step {earlier[-1]}"
    one = len(browser.run(LIT.format("lit")))
    browser.click("input[name=depth][value='3']")
    assert len(browser.run(LIT.format("lit"))) == one
    assert len(browser.run(LIT.format("chain"))) > 0
    assert browser.complaints() == []


def test_influence_on_the_loss(browser: Browser, page: str, recorded) -> None:
    browser.open(page, 1200)
    ranked = [pair for pair in recorded.influence.top(10_000) if pair[0].batch == 1][:15]
    rows = "Array.from(document.querySelectorAll('#ranking tr'), r => r.cells[1].textContent)"
    shown = [float(value.replace(MINUS, "-")) for value in browser.run(rows)]
    assert shown == pytest.approx([value for _, value in ranked], rel=1e-3)
    colored = "document.querySelectorAll('.raster .spike.mixed').length"
    assert browser.run(colored) == 0
    browser.click("input[name=color][value=loss]")
    assert browser.run(colored) > len(recorded.context.spikes(batch=1)) / 2


def test_the_space_turns(browser: Browser, page: str) -> None:
    browser.open(page, 1200)
    places = (
        "Array.from(document.querySelectorAll('.space .neuron'), "
        "e => [e.getAttribute('cx'), e.textContent])"
    )
    before = sorted(browser.run(places))
    browser.run(
        "document.querySelector('.space').scrollIntoView({block: 'center', behavior: 'instant'})"
    )
    x, y = browser.run(
        "(() => { const b = document.querySelector('.space').getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    for kind, dx in (("mousePressed", 0), ("mouseMoved", 80), ("mouseReleased", 80)):
        params = {"type": kind, "x": x + dx, "y": y, "button": "left", "buttons": 1}
        browser.call("Input.dispatchMouseEvent", clickCount=1, **params)
    assert sorted(browser.run(places)) != before
    assert browser.complaints() == []
