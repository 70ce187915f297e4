"""Headings of the tasks."""

from __future__ import annotations

from ember_ml.mad.scales import short_name
from ember_ml.training.reports.markup import text


def task_title(task: str) -> str:
    """Return the column heading of a task."""
    return f'<span title="{text(task)}">{text(short_name(task).capitalize())}</span>'
