"""Writing the report of a sweep into its folder."""

from __future__ import annotations

import os
from pathlib import Path

from ember_ml._core.files import write_atomically
from ember_ml.mad.report.export import as_csv, as_json
from ember_ml.mad.report.gather import gather
from ember_ml.mad.report.page import page
from ember_ml.mad.store import Store


def write_report(path: str | os.PathLike[str], *, published: bool = True) -> Path:
    """Write `report.html`, `results.json` and `results.csv` into the folder of a sweep.

    The page stands alone: it loads nothing, and can be sent or kept as one file. A sweep that is
    not finished has a report too, which says what is missing and what failed.

    Args:
        path: the folder.
        published: whether to compare with the published scores, where there are any.

    Returns:
        The path of the page.
    """
    store = Store(path)
    report = gather(store)
    target = store.path / "report.html"
    contents = {
        store.path / "results.json": as_json(report),
        store.path / "results.csv": as_csv(report),
        target: page(report, published=published),
    }
    for file, content in contents.items():
        write_atomically(file, content.encode("utf-8", "replace"))
    return target
