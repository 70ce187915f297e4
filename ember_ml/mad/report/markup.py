"""Pieces of HTML. What comes from a sweep goes through `text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from ember_ml.mad.report.colors import line_classes
from ember_ml.mad.scales import short_name


def text(value: Any) -> str:
    """Anything as text that is safe in an element and in an attribute.

    Example:
        >>> text('<b a="1">')
        '&lt;b a=&quot;1&quot;&gt;'
    """
    return html.escape(str(value))


def task_title(task: str) -> str:
    """A task as a heading of a column."""
    return f'<span title="{text(task)}">{text(short_name(task).capitalize())}</span>'


def section(name: str, title: str, body: str, note: str = "") -> str:
    """A part of the page; nothing if it has no body."""
    if not body:
        return ""
    note = f'<p class="note">{note}</p>' if note else ""
    return f'<section id="{name}"><h2>{title}</h2>{note}{body}</section>'


def cell(shown: str, value: Any = None, kind: str = "") -> str:
    """A cell of a table.

    Args:
        shown: its HTML.
        value: what to sort by; the text if not given.
        kind: its class.
    """
    sort = "" if value is None else f' data-value="{text(value)}"'
    style = f' class="{kind}"' if kind else ""
    return f"<td{style}{sort}>{shown}</td>"


def table(
    head: Sequence[str],
    rows: Iterable[str],
    kind: str = "",
    label: str = "",
    ordered: int | None = None,
    words: int = 1,
) -> str:
    """A table in a box of its own, that scrolls if it is too wide, and is sorted by its headings.

    Args:
        head: the HTML of the headings.
        rows: the HTML of the rows.
        kind: its class.
        label: what it is a table of.
        ordered: the column by which the rows are ordered as they stand, from the highest.
        words: how many columns at the left hold words; the others hold numbers.
    """
    cells = "".join(
        _heading(title, words=at < words, ordered=at == ordered) for at, title in enumerate(head)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="box" role="region" aria-label="{text(label)}" tabindex="0">'
        f'<table class="sortable {kind}"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _heading(title: str, *, words: bool, ordered: bool) -> str:
    kind = "words" if words else "values"
    order = "descending" if ordered else "none"
    button = f'<button type="button">{title}</button>'
    return f'<th scope="col" class="{kind}" aria-sort="{order}">{button}</th>'


def dot(place: int) -> str:
    """The colour of an architecture."""
    return f'<svg class="dot {line_classes(place)}" viewBox="0 0 22 10" aria-hidden="true">' + (
        '<path class="line" d="M0 5H22"/><circle cx="11" cy="5" r="3.4"/></svg>'
    )


def name_cell(name: str, place: int) -> str:
    """The head of an architecture's row."""
    return f'<th scope="row">{dot(place)}{text(name)}</th>'


def legend(names: Sequence[str]) -> str:
    """All architectures; pressing one brings its lines to the front."""
    items = "".join(
        f'<button type="button" aria-pressed="false" data-line="{at}">'
        f"{dot(at)}{text(name)}</button>"
        for at, name in enumerate(names)
    )
    return f'<div class="legend" role="group" aria-label="Architectures">{items}</div>'
