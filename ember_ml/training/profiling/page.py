"""HTML page of a profile, in one file."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.training.profiling.gather import OUTSIDE_NAME
from ember_ml.training.profiling.result import Profile, Row
from ember_ml.training.profiling.sentences import notes, summary, warning
from ember_ml.training.profiling.units import (
    show_bytes,
    show_flops,
    show_seconds,
    show_share,
)
from ember_ml.training.reports.document import document
from ember_ml.training.reports.markup import cell, section, table, text

HEAD = ("Calls", "Forward", "Backward", "Share", "Operations", "Rate", "Of peak")
MARK = '<section id="profile"'
"""What a profile page contains, so that it is recognized."""
STYLE = """
body { max-width: 1320px; }
.ranking li { grid-template-columns: minmax(6rem, 15rem) 1fr 6rem; }
@media screen and (max-width: 640px) { .ranking li { grid-template-columns: 1fr auto; } }
.numbers tbody td, .numbers thead button { padding-left: 0.6rem; padding-right: 0.6rem; }
.numbers tbody th { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.ranking .name { overflow-wrap: anywhere; }
.ranking + .box { margin-top: 0.8rem; }
.kind { white-space: nowrap; }
.bar { display: flex; }
.swatch { padding-right: 1rem; }
.swatch::before { content: ""; display: inline-block; width: 0.8rem; height: 0.8rem; }
.swatch::before { margin-right: 0.4rem; background: var(--c); border-radius: 3px; }
"""


def page(profile: Profile) -> str:
    """Return the HTML of a profile; the page is self-contained.

    Args:
        profile: The profile.
    """
    sections = [
        _summary_section(profile),
        _parts_section(profile),
        _groups_section(profile),
        _ops_section(profile),
        _modules_section(profile),
        _memory_section(profile),
        _method_section(profile),
    ]
    title = f"Profile of {profile.title}"
    steps = f"{profile.steps} step" + ("" if profile.steps == 1 else "s")
    header = text(f"{profile.backend} on {profile.device}; the means of {steps}.")
    remark = warning(profile)
    header = f"<p>{header}</p>\n" + (f'<p class="warning">{text(remark)}</p>\n' if remark else "")
    return document(title, header, sections, profile.to_dict(), style=STYLE)


def _summary_section(profile: Profile) -> str:
    rows = (f'<th scope="row">{text(name)}</th>{cell(text(x))}' for name, x in summary(profile))
    return section("profile", "Summary", table(["What", "Value"], rows, "", "Summary", words=2))


def _bars(values: Sequence[tuple[str, Sequence[float], str]], whole: float | None = None) -> str:
    """Return bars of one or several parts with names and texts.

    Args:
        values: Name, parts and text of each bar.
        whole: Value of a bar of full length. Default: the sum of all.
    """
    total = sum(sum(parts) for _, parts, _ in values) if whole is None else whole
    total = total or 1.0
    items = "".join(
        f'<li><span class="name">{text(name)}</span>'
        f'<span class="bar">{_lengths([part / total for part in parts])}</span>'
        f'<span class="value">{text(shown)}</span></li>'
        for name, parts, shown in values
    )
    return f'<ol class="ranking">{items}</ol>' if items else ""


def _lengths(shares: Sequence[float]) -> str:
    return "".join(
        f'<i class="c{at}" style="width:{100 * share:.2f}%"></i>' for at, share in enumerate(shares)
    )


def _time_bars(rows: Sequence[Row]) -> str:
    """Return bars of the times of the forward and the backward pass, with a key."""
    parts = [(row.name, (row.forward, row.backward), show_seconds(row.seconds)) for row in rows]
    bars = _bars(parts)
    key = '<span class="swatch c0">forward</span><span class="swatch c1">backward</span>'
    return f"<p>{key}</p>{bars}" if bars and any(row.backward for row in rows) else bars


def _parts_section(profile: Profile) -> str:
    parts = list(profile.parts.items())
    if profile.between is not None and parts:
        parts.append(("between steps", profile.between))
    body = _bars([(name, (value,), show_seconds(value)) for name, value in parts])
    note = (
        "Wall-clock time of the parts of a profiled step, with the Python code around the native "
        "calls and without the time of the measurement."
    )
    return section("parts", "Parts of a step", body, note)


def _groups_section(profile: Profile) -> str:
    body = _time_bars(profile.groups)
    rows = (_row(row, profile) for row in profile.groups)
    body += table(["Group", *HEAD], rows, "numbers", "Groups of ops", ordered=4) if body else ""
    return section("groups", "Groups of ops", body, "Time in native calls.")


def _ops_section(profile: Profile) -> str:
    rows = [_row(row, profile, row.kind) for row in profile.ops]
    body = table(["Op", "Group", *HEAD], rows, "numbers", "Ops", words=2) if rows else ""
    note = (
        "Time in native calls, the largest first. Peak is the rate of the fastest matrix product. "
        "Click a heading to sort by it."
    )
    return section("ops", "Ops", body, note)


def _modules_section(profile: Profile) -> str:
    rows = [
        _row(row, profile, row.kind)
        + _time(row.own)
        + cell(text(show_seconds(row.python)), row.python, "number")
        for row in profile.modules
    ]
    head = ["Module", "Class", *HEAD, "Own", "Python"]
    body = _time_bars(_layer_rows(profile))
    body += table(head, rows, "numbers", "Modules", words=2) if rows else ""
    note = (
        "Time in native calls, with the modules inside; Own is without them. Python is the rest of "
        "the forward pass: layers, dispatch and recording."
    )
    return section("modules", "Modules", body, note)


def _layer_rows(profile: Profile) -> list[Row]:
    """Return the rows of the layers that reports list, without modules inside or around them."""
    return [row for row in profile.modules if row.name in (*profile.layers, OUTSIDE_NAME)]


def _row(row: Row, profile: Profile, kind: str | None = None) -> str:
    total = profile.native or 1.0
    peak = profile.peak.flops if profile.peak is not None else 0.0
    share = row.rate / peak if peak and row.flops else None
    middle = "" if kind is None else cell(text(kind), kind="kind")
    return (
        f'<th scope="row">{text(row.name)}</th>{middle}'
        + cell(f"{row.calls:,.0f}", row.calls, "number")
        + _time(row.forward)
        + _time(row.backward)
        + cell(show_share(row.seconds / total), row.seconds / total, "number")
        + cell(text(show_flops(row.flops) if row.flops else ""), row.flops, "number")
        + cell(text(show_flops(row.rate, "FLOP/s") if row.flops else ""), row.rate, "number")
        + cell(show_share(share), -1.0 if share is None else share, "number")
    )


def _time(seconds: float) -> str:
    return cell(text(show_seconds(seconds)), seconds, "number")


def _memory_section(profile: Profile) -> str:
    sizes = [(name.replace("_", " "), size) for name, size in profile.memory.items()]
    whole = max(profile.memory.values(), default=0)
    body = _bars([(name, (size,), show_bytes(size)) for name, size in sizes if size], whole)
    layers = [(name, (size,), show_bytes(size)) for name, size in profile.layer_memory.items()]
    if any(size for _, (size,), _ in layers):
        body += f"<h3>Kept for the backward pass</h3>{_bars(layers)}"
    note = (
        "Recorded in another step. The peak includes the parameters and the state of the optimizer."
        if "parameters" in profile.memory
        else "Largest growth of the memory in use."
    )
    return section("memory", "Memory", body, note)


def _method_section(profile: Profile) -> str:
    items = "".join(f"<p>{text(sentence)}</p>" for sentence in notes(profile))
    trace = (
        "<p>trace.json is the timeline: open it in chrome://tracing or at "
        "ui.perfetto.dev, which reads it in the browser.</p>"
    )
    return section("method", "How it was measured", items + (trace if profile.timeline else ""))
