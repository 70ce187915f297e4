"""Folder of a search: what is searched, the history, the best config and the report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ember_ml._core.files import read_regular, write_atomically
from ember_ml._core.version import VERSION
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.module import SelfTuningModule

FORMAT = 1
FILE = "tune.json"
SHARED = ("config", "tune", "backend", "task")
"""Values that must be equal to continue a search."""


class TuningFolder:
    """Folder with `tune.json`, which describes a search, and its results.

    Args:
        path: Path of the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def open(self, about: Mapping[str, Any]) -> None:
        """Create the folder, or check that it holds the same search.

        Args:
            about: Config, fields of the search, backend, task and budget. The budget may differ
                from that of the folder, which is replaced.
        """
        file = self.path / FILE
        if not file.exists():
            self._check_is_empty()
        else:
            self._check_is_same(json.loads(json.dumps(about)), self.about())
        content = {"format": FORMAT, "ember_ml": VERSION, **about}
        write_atomically(file, (json.dumps(content, indent=2) + "\n").encode())

    def _check_is_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise TuningError(f"{self.path} is a file, not a folder")
        if self.path.exists() and any(self.path.glob("[!.]*")):
            raise TuningError(
                f"{self.path} contains files but is not a search (no {FILE}); use an empty or new "
                "folder"
            )

    def _check_is_same(self, about: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        given, stored = (_flat({key: each.get(key) for key in SHARED}) for each in (about, known))
        differences = [
            f"{key} is {stored.get(key)!r:.80}, not {given.get(key)!r:.80}"
            for key in {**stored, **given}
            if stored.get(key) != given.get(key)
        ]
        if differences:
            lines = "".join(f"\n  {each}" for each in differences[:8])
            raise TuningError(
                f"{self.path} belongs to another search; use another folder (--out):{lines}"
            )

    def about(self) -> dict[str, Any]:
        """Return the content of `tune.json`."""
        file = self.path / FILE
        try:
            data = json.loads(read_regular(file))
        except FileNotFoundError:
            raise TuningError(f"{self.path} is not a search: it contains no {FILE}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise TuningError(f"{file} cannot be read: {error}") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise TuningError(f"{file} is damaged, or of another version of Ember ML")
        parts = [data.get(key) for key in ("config", "tune")]
        if not all(isinstance(part, dict) for part in parts):
            raise TuningError(f"{file} is damaged: it has no config, or no search")
        return data

    def check(self, about: Mapping[str, Any]) -> None:
        """Raise an error if the search is invalid, or its history belongs to another one.

        Args:
            about: Content of `tune.json`, before it is written.
        """
        given = about["tune"].get("history")
        self._tuner(about, given if given is not None and Path(given).exists() else None)

    def tuner(self, about: Mapping[str, Any]) -> SelfTuningModule:
        """Return the tuner of a search.

        Args:
            about: Content of `tune.json`.
        """
        given = about["tune"].get("history")
        return self._tuner(about, self.path / "history.jsonl" if given is None else given)

    def _tuner(self, about: Mapping[str, Any], history: str | Path | None) -> SelfTuningModule:
        tune = about["tune"]
        try:
            options = {name: tune[name] for name in OPTIONS}
        except KeyError as error:
            raise TuningError(f"{self.path / FILE} is damaged: it has no {error}") from None
        return SelfTuningModule(history=history, task=about["task"], **options)


OPTIONS = ("space", "metric", "mode", "sampler", "pruner", "objectives", "seed")
"""Fields of a search that are arguments of the tuner."""


def _flat(data: Any, key: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by dotted key."""
    if not isinstance(data, Mapping):
        return {key: data}
    pairs = [_flat(value, f"{key}.{name}" if key else str(name)) for name, value in data.items()]
    return {name: value for pair in pairs for name, value in pair.items()}
