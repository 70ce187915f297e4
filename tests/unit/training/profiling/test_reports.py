"""The files of a profile: the trace format, the page and the tables."""

from __future__ import annotations

import html.parser
import json
from collections import defaultdict

import pytest

from ember_ml import nn, ops
from ember_ml.training import ProfileOptions, Trainer, profile
from ember_ml.training.profiling import events, trace_events, write_profile
from ember_ml.training.profiling import text as tables
from ember_ml.training.profiling.page import page


class Evil(nn.Module):
    """Module with a name that must be escaped."""

    def __init__(self) -> None:
        self.parts = nn.ModuleDict({"<script>&": nn.layers.Dense(4, 4)})

    def forward(self, x):
        return ops.sum(self.parts["<script>&"](x))


def measured(count=1):
    model = Evil()
    x = ops.ones((2, 4))
    with profile(model) as result:
        for _ in range(count):
            nn.value_and_grad(model, lambda: model(x))()
    return result.result


@pytest.mark.usefixtures("backend")
def test_trace(tmp_path):
    """Events have the fields of the format, and those of a row are nested or apart."""
    result = measured()
    trace = json.loads(write_profile(result, tmp_path).with_name("trace.json").read_text())
    assert trace == json.loads(json.dumps(trace_events(result)))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    rows = defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            rows[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
    names = {event["name"] for event in trace["traceEvents"]}
    assert {"(model)", "parts.<script>&", "nn.projection.linear"} <= names
    assert any(name.startswith("nn.projection.linear backward") for name in names)
    assert min(start for spans in rows.values() for start, _ in spans) == 0
    check_nesting(rows.values())


def check_nesting(rows):
    """Check that the spans of each row are nested or apart."""
    for spans in rows:
        open_until: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= start + 1e-6:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_trace_of_training(accumulate):
    """The parts of a step lie within it."""
    model = nn.layers.Dense(4, 2)
    trainer = Trainer(
        model, "mse", progress=False, accumulate=accumulate, profile=ProfileOptions(2, 0, None)
    )
    trainer.fit((ops.ones((8, 4)), ops.ones((8, 2))), steps=6, batch_size=4)
    rows = defaultdict(list)
    for event in trace_events(trainer.profiler.result)["traceEvents"]:
        if event["ph"] == "X":
            rows[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            if event["tid"] == 1 and event["name"] in ("step", "batch"):
                rows["wholes"].append(rows[1][-1])
    check_nesting(rows.values())
    assert len(rows["wholes"]) == 2 * accumulate
    for start, end in rows[1]:
        assert any(first <= start and end <= last + 1e-3 for first, last in rows["wholes"])


def test_long_timelines_are_cut(monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENTS", 10)
    result = measured(3)
    assert len(result.timeline) == 10
    assert result.dropped > 0
    assert sum(row.calls for row in result.ops) > 10 - result.dropped
    assert f"{result.dropped} calls are missing" in page(result)


def test_page():
    text = page(measured())
    assert (
        "<script>&"
        not in text.replace("<script>", "", 0).partition("<main>")[2].partition("</main>")[0]
    )
    assert "parts.&lt;script&gt;&amp;" in text
    parser = html.parser.HTMLParser()
    ids: list[str] = []
    parser.handle_starttag = lambda tag, attrs: ids.extend(  # type: ignore[method-assign]
        value for name, value in attrs if tag == "section" and name == "id" and value
    )
    parser.feed(text)
    assert ids == ["profile", "groups", "ops", "modules", "method"]


def test_tables():
    result = measured()
    text = str(result)
    for part in ("Profile of Evil", "native calls", "fastest matrix product", "projection.linear"):
        assert part in text
    assert "share of peak" in text
    assert "more" not in text


def test_tables_say_what_they_leave_out(monkeypatch):
    monkeypatch.setattr(tables, "MAX_OPS", 1)
    monkeypatch.setattr(tables, "MAX_MODULES", 2)
    result = measured()
    shown = str(result).splitlines()
    assert f"... and {len(result.ops) - 1} more" in shown
    assert shown[-1] == f"... and {len(result.modules) - 2} more"


def test_profiles_without_calls_say_why():
    with profile(backend="torch") as result:
        pass
    for shown in (str(result.result), page(result.result)):
        assert "No op was measured. A profile measures ops of torch in its own thread" in shown
    assert "No op was measured" not in page(measured())
