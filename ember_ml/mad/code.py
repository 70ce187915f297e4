"""Which code of other people the parts of a run come from."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.configs.patterns import entry_of, items_of
from ember_ml.registry import get

OWN = "ember_ml."


def code_of(layers: Any, task: Config) -> str:
    """A digest of the files, not of Ember ML, that define the layers and the task.

    Results of a layer that was changed since are then not taken for its own.

    Returns:
        Nothing if all is Ember ML's.
    """
    names = sorted({name for name in _modules(layers, task) if not name.startswith(OWN)})
    files = [getattr(sys.modules.get(name), "__file__", None) for name in names]
    known = [Path(file) for file in files if file]
    if not known:
        return ""
    return hashlib.sha256(b"".join(file.read_bytes() for file in known)).hexdigest()[:10]


def _modules(layers: Any, task: Config) -> Iterator[str]:
    for item in items_of(layers):
        name = item.get("type") if isinstance(item, Mapping) else item
        yield entry_of(name).target.__module__
    yield get(task.component).target.__module__
