"""HTML fragments. All text that a user can choose is escaped with `text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ember_ml.training.reports.colors import line_classes


def text(value: object) -> str:
    """Return a value as text that is safe in an element and in an attribute.

    Example:
        >>> text('<b a="1">')
        '&lt;b a=&quot;1&quot;&gt;'
    """
    return html.escape(str(value))


def section(name: str, title: str, body: str, note: str = "") -> str:
    """Return a section of the page; an empty string if it has no body."""
    if not body:
        return ""
    note = f'<p class="note">{note}</p>' if note else ""
    return f'<section id="{name}"><h2>{title}</h2>{note}{body}</section>'


def cell(shown: str, value: object = None, kind: str = "") -> str:
    """Return a cell of a table.

    Args:
        shown: HTML of the content.
        value: Sort key. Default: the text.
        kind: CSS class.
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
    """Return a sortable table in a box that scrolls horizontally.

    Args:
        head: HTML of the headings.
        rows: HTML of the rows.
        kind: CSS class.
        label: Accessible name.
        ordered: Column by which the rows are sorted in descending order. Default: none.
        words: Number of columns on the left that contain words; the others contain numbers.
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
    """Return a marker in the color of a line.

    Args:
        place: Position of the line, which determines its color.
    """
    return f'<svg class="dot {line_classes(place)}" viewBox="0 0 22 10" aria-hidden="true">' + (
        '<path class="line" d="M0 5H22"/><circle cx="11" cy="5" r="3.4"/></svg>'
    )


def name_cell(name: str, place: int) -> str:
    """Return the row heading of a line.

    Args:
        name: Name of the line.
        place: Position of the line, which determines its color.
    """
    return f'<th scope="row">{dot(place)}{text(name)}</th>'


def legend(names: Sequence[str], label: str = "Architectures") -> str:
    """Return buttons that highlight the lines of each name.

    Args:
        names: Names of the lines.
        label: Accessible name of the group of buttons.
    """
    items = "".join(
        f'<button type="button" aria-pressed="false" data-line="{at}">'
        f"{dot(at)}{text(name)}</button>"
        for at, name in enumerate(names)
    )
    return f'<div class="legend" role="group" aria-label="{text(label)}">{items}</div>'
