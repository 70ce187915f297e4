"""History of a search: the trials in an append-only file."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ember_ml._core.version import VERSION
from ember_ml.training.tuning.errors import HistoryError, HistoryWarning, TuningError
from ember_ml.training.tuning.log_file import LogFile
from ember_ml.training.tuning.pruning import Pruner
from ember_ml.training.tuning.space import SearchSpace
from ember_ml.training.tuning.trial import Trial

FORMAT = 1
START = b'{"kind":"space"'
"""Beginning of a history file."""


class TuningHistory:
    """Trials of one search space, of one or several tasks, in a file of JSON lines.

    The first line describes the space and the objectives. A file with other ones is refused. Each
    other line is an event of a trial: "asked", "restarted", "report", "told", "pruned", "failed".

    Args:
        path: The file; created if missing. None keeps the history in memory.
        space: The search space.
        objectives: "min" or "max" for each objective. The first is the metric.
        pruner: Sees each report in the order of the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        space: SearchSpace,
        objectives: Mapping[str, str],
        pruner: Pruner | None = None,
    ) -> None:
        self.space = space
        self.objectives = dict(objectives)
        self.trials: dict[int, Trial] = {}
        self.pruner: Pruner | None = pruner
        self._log = None if path is None else LogFile(path)
        self._threads = threading.RLock()  # the lock of the file is for processes
        self._has_header = path is None
        if self._log is not None:
            with self._log.locked():
                self.refresh()
                if not self._has_header:
                    self._check_is_new(self._log)
                    self._append(self._header())

    def _check_is_new(self, log: LogFile) -> None:
        """Raise an error if the file has contents other than the beginning of a header."""
        start = log.first_bytes(len(START))
        if start != START[: len(start)]:
            raise HistoryError(
                f"{log.path}: not a history of trials: it starts with {start!r}; use a new file"
            )

    def _header(self) -> dict[str, Any]:
        return {
            "kind": "space",
            "format": FORMAT,
            "ember_ml": VERSION,
            "fingerprint": self.space.fingerprint(),
            "space": self.space.to_dict(),
            "objectives": self.objectives,
        }

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file within the `with` block, and read what others wrote."""
        with self._threads:
            if self._log is None:
                yield
                return
            with self._log.locked():
                self.refresh()
                yield

    def refresh(self) -> None:
        """Read the records that other processes have written since the last call."""
        with self._threads:
            for line, record in [] if self._log is None else self._log.new_records():
                self._read(record, f"{self._log.path}, line {line}" if self._log else "")

    def _read(self, record: Mapping[str, Any], where: str) -> None:
        if not self._has_header:
            self._check_header(record, where)
            self._has_header = True
            return
        try:
            self._apply(record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            warnings.warn(f"{where}: skipped: {error!r:.200}", HistoryWarning, stacklevel=2)

    def _check_header(self, record: Mapping[str, Any], where: str) -> None:
        """Raise an error if the file belongs to another space, with the differences."""
        if record.get("kind") != "space":
            raise HistoryError(f"{where}: not a history of trials: the first line names no space")
        if record.get("format") != FORMAT:
            raise HistoryError(
                f"{where}: the history has the format {record.get('format')!r}; this version of "
                f"Ember ML reads {FORMAT}"
            )
        differences = self._differences(record, where)
        if differences:
            lines = "".join(f"\n  {each}" for each in differences)
            raise HistoryError(
                f"{where}: the history belongs to another search; use another file, or the same "
                f"space and objectives:{lines}"
            )

    def _differences(self, record: Mapping[str, Any], where: str) -> list[str]:
        try:
            other = SearchSpace.from_dict(record["space"])
            objectives = dict(record["objectives"])
        except (KeyError, TypeError, ValueError) as error:
            raise HistoryError(
                f"{where}: the description of the space is damaged: {error}"
            ) from None
        found = [
            line.replace("the other space", "the file") for line in self.space.differences(other)
        ]
        if objectives != self.objectives:
            found.append(f"the objectives are {self.objectives}, in the file {objectives}")
        return found

    def _apply(self, record: Mapping[str, Any]) -> None:
        """Change the trials as an event says."""
        kind, number = record["kind"], int(record["id"])
        if kind == "asked":
            self._add(record, number)
            return
        if number not in self.trials:
            raise TuningError(f"trial {number} has no record of its start")
        trial = self.trials[number]
        if kind == "restarted":
            trial.owner, trial.reports, trial.stopped = dict(record["owner"]), [], False
            if self.pruner is not None:
                self.pruner.forget(trial)
        elif kind == "report":
            self._add_report(trial, int(record["step"]), float(record["value"]))
        elif kind in ("told", "pruned"):
            values = {str(name): float(value) for name, value in record["values"].items()}
            trial.scores = values
            trial.state = "done" if kind == "told" else "pruned"
        elif kind == "failed":
            trial.state, trial.reason = "failed", str(record["reason"])

    def _add(self, record: Mapping[str, Any], number: int) -> None:
        if number in self.trials:
            raise TuningError(f"trial {number} was asked for twice")
        names = ("task", "source", "seed", "sampler", "owner")
        self.trials[number] = Trial(
            id=number,
            params=copy.deepcopy(self.space.check(record["params"])),
            meta={str(name): float(value) for name, value in record["meta"].items()},
            **{name: record[name] for name in names},
        )

    def _add_report(self, trial: Trial, step: int, value: float) -> None:
        trial.reports.append((step, value))
        if self.pruner is not None and self.pruner.observe(trial, step, value):
            trial.stopped = True

    def _append(self, record: Mapping[str, Any]) -> None:
        with self._threads:
            if self._log is not None:
                self._log.append(record)
                self.refresh()
            else:
                self._read(record, "history")

    def start(self, trial: Trial, owner: Mapping[str, Any]) -> Trial:
        """Add a new trial under the next number, and return it.

        Args:
            trial: Trial, whose id is ignored.
            owner: Process that runs it.
        """
        with self.locked():
            number = max(self.trials, default=-1) + 1
            fields = trial.to_dict() | {"id": number, "owner": dict(owner)}
            fields["space"] = self.space.fingerprint()
            self._append({"kind": "asked", **fields, "time": round(time.time(), 3)})
            return self.trials[number]

    def restart(self, trial: Trial, owner: Mapping[str, Any]) -> Trial:
        """Record that another process runs a trial again, and return the trial.

        Args:
            trial: Trial whose process has ended.
            owner: Process that runs it now.
        """
        self._append({"kind": "restarted", "id": trial.id, "owner": dict(owner)})
        return self.trials[trial.id]

    def add(self, kind: str, trial: Trial, **fields: Any) -> None:
        """Add an event of a trial.

        Args:
            kind: "report", "told", "pruned" or "failed".
            trial: The trial.
            **fields: Values of the event.
        """
        self._append({"kind": kind, "id": trial.id, **fields})

    def of_task(self, task: str) -> list[Trial]:
        """Return the trials of a task.

        Args:
            task: Name of the task.
        """
        return [trial for trial in self.trials.values() if trial.task == task]

    def others(self, task: str) -> list[Trial]:
        """Return the completed trials of other tasks.

        Args:
            task: Name of the task.
        """
        return [each for each in self.trials.values() if each.task != task and each.state == "done"]
