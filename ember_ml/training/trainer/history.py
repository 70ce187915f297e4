"""Records of a training run."""

from __future__ import annotations

import itertools
import os
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ember_ml.training.trainer.history_log import HistoryLog, Record, plain

WINDOW = 100_000
"""Number of records of steps, and of epochs, that stay in memory."""


class History:
    """Losses of all steps and results of all epochs.

    Memory is bounded: the attributes have at least the last 100,000 records. Earlier ones are in
    a file; `all_steps` and `all_epochs` read them.

    Attributes:
        steps: Record of each step: step, epoch, loss, learning_rate.
        epochs: Record of each epoch: epoch, step, loss, and the evaluation's "val_..." values.
        log: Log of the records, which a checkpoint includes.
    """

    def __init__(self) -> None:
        self.steps: list[Record] = []
        self.epochs: list[Record] = []
        self._restart_log(HistoryLog())

    def _restart_log(self, log: HistoryLog) -> None:
        self.log = log
        self._logged = {"step": 0, "epoch": 0}  # how many records of the lists are in the log

    def add_step(self, record: Record) -> None:
        """Add the record of a step. Callbacks may change it until the next one is added."""
        self.steps.append(record)
        self._limit("step", self.steps)

    def add_epoch(self, record: Record) -> None:
        """Add the record of an epoch. Callbacks may change it until the next one is added."""
        self.epochs.append(record)
        self._limit("epoch", self.epochs)

    @property
    def losses(self) -> list[float]:
        """Loss of each step in `steps`."""
        return [record["loss"] for record in self.steps]

    def steps_of(self, epoch: int) -> list[Record]:
        """Return the records of an epoch's steps, if it is the last one."""
        newest = itertools.takewhile(lambda r: r.get("epoch") == epoch, reversed(self.steps))
        records = list(newest)[::-1]
        # the epoch began before the records in memory
        if len(records) == len(self.steps) < self._count("step", self.steps):
            return [record for record in self.all_steps() if record["epoch"] == epoch]
        return records

    def losses_of(self, epoch: int) -> list[float]:
        """Return the losses of an epoch's steps, if it is the last one."""
        return [record["loss"] for record in self.steps_of(epoch)]

    def column(self, name: str) -> list[float]:
        """Return a value of all epochs that have it, such as "val_loss"."""
        return [record[name] for record in self.epochs if name in record]

    def all_steps(self) -> Iterator[Record]:
        """Iterate over the records of all steps, including those that are no longer in memory."""
        return self._all("step", self.steps)

    def all_epochs(self) -> Iterator[Record]:
        """Iterate over the records of all epochs, including those that are no longer in memory."""
        return self._all("epoch", self.epochs)

    def _all(self, kind: str, recent: list[Record]) -> Iterator[Record]:
        earlier = self._count(kind, recent) - len(recent)
        if earlier:
            yield from itertools.islice(self.log.records(kind), earlier)
        yield from list(recent)

    def _count(self, kind: str, recent: list[Record]) -> int:
        """Return the number of records of a kind."""
        position = self.log.position
        logged = position.steps if kind == "step" else position.epochs
        return logged + len(recent) - self._logged[kind]

    def _limit(self, kind: str, recent: list[Record]) -> None:
        """Write the oldest records to the log when there are too many in memory."""
        if len(recent) > WINDOW + WINDOW // 4:
            self._write_log(kind, recent)
            del recent[: len(recent) - WINDOW]
            self._logged[kind] = WINDOW - 1

    def _write_log(self, kind: str, recent: list[Record]) -> None:
        """Write the records except the newest one, which may still change."""
        first = min(self._logged[kind], len(recent))
        for record in recent[first:-1]:
            self.log.append(kind, record)
        self._logged[kind] = max(len(recent) - 1, first)

    def position(self) -> dict[str, Any]:
        """Write all records but the newest to the log; return its position and the newest ones."""
        if self.log.is_truncated():
            warnings.warn(
                f"{self.log.path} was truncated: the log starts again with the records in memory",
                stacklevel=2,
            )
            self._restart_log(HistoryLog())
        self._write_log("step", self.steps)
        self._write_log("epoch", self.epochs)
        return {
            **self.log.position._asdict(),
            "newest_steps": [plain(each) for each in self.steps[self._logged["step"] :]],
            "newest_epochs": [plain(each) for each in self.epochs[self._logged["epoch"] :]],
        }

    @classmethod
    def from_log(cls, log: HistoryLog, newest: Mapping[str, list[Record]]) -> History:
        """Return the history with the records of a log.

        Args:
            log: The log.
            newest: Records that follow, under "step" and "epoch".
        """
        history = cls()
        history._restart_log(log)
        for kind, recent in (("step", history.steps), ("epoch", history.epochs)):
            recent.extend(deque(log.records(kind), WINDOW))
            history._logged[kind] = len(recent)
            recent.extend(newest[kind])
        return history

    def become(self, other: History) -> None:
        """Take over the records of another history."""
        self.__dict__.update(other.__dict__)

    def state_dict(self) -> dict[str, Any]:
        """Return the records in memory as plain data."""
        return {"steps": self.steps, "epochs": self.epochs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore records that `state_dict` returned."""
        steps, epochs = ([dict(record) for record in state[name]] for name in ("steps", "epochs"))
        self.steps, self.epochs = steps, epochs
        self._restart_log(HistoryLog())

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()  # without the log, whose files are open

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state_dict(state)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Plot the curves, and return the matplotlib figure.

        Args:
            path: Image file to write. Default: none.
        """
        from matplotlib.figure import Figure

        names = sorted({name for record in self.epochs for name in record} - _NOT_CURVES)
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot([r["step"] for r in self.steps], self.losses, lw=0.8, color="0.7", label="step")
        for name, axes in [("loss", left), ("val_loss", left), *((n, right) for n in names)]:
            points = [(r["step"], r[name]) for r in self.epochs if name in r]
            if points:
                axes.plot(*zip(*points, strict=True), marker=".", label=name)
        left.set(xlabel="step", ylabel="loss")
        right.set(xlabel="step", ylabel="metric")
        for axes in (left, right):
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)
            axes.spines[["top", "right"]].set_visible(False)
        right.set_visible(bool(names))
        if path is not None:
            figure.savefig(path, dpi=144)
        return figure


_NOT_CURVES = {"epoch", "step", "loss", "val_loss", "seconds", "learning_rate"}
