"""Loggers."""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import EmberError
from ember_ml._core.files import write_atomically
from ember_ml._core.requirements import install_command
from ember_ml.data.errors import check_integer
from ember_ml.training.callbacks.base import Callback, check_interval

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class LRMonitor(Callback):
    """Adds the learning rate of each parameter group to the records."""

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Add the learning rates to the record."""
        for at, rate in enumerate(trainer.learning_rates()):
            record[f"learning_rate/{at}"] = rate

    on_epoch_end = on_step_end


class CSVLogger(Callback):
    """Writes a row for each epoch, or every `every_steps` steps, to a CSV file.

    A value that appears later, such as one from the first evaluation, becomes a new column.
    A resumed training continues its file.
    A file of another run is renamed, with a warning.

    Args:
        path: The file.
        every_steps: Steps from one row to the next; steps with an evaluation have a row too.
            Default: a row for each epoch.
    """

    main_only = True

    def __init__(self, path: str | os.PathLike[str], *, every_steps: int | None = None) -> None:
        self.path = Path(path)
        self.every_steps = check_interval("CSVLogger", every_steps)
        self._columns: list[str] | None = None

    def on_fit_start(self, trainer: Trainer) -> None:
        """Continue the file of a resumed training, or start a new one."""
        self._columns = None
        self.path = self.path.absolute()  # also if a callback changes the working directory
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = self._rows() if trainer.step and self.path.exists() else []
        if rows and "step" in rows[0]:
            self._columns = list(rows[0])
            self._rewrite(rows, trainer.step)
            return
        self._set_aside()
        self.path.write_text("", encoding="utf-8")

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Write a row every `every_steps` steps, and after an evaluation."""
        if self.every_steps is not None and _is_due(trainer.step, self.every_steps, record):
            self._append(record)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Write a row."""
        if self.every_steps is None:
            self._append(record)

    def _rows(self) -> list[dict[str, str]]:
        """Return the rows of the file; none if it is not a CSV file."""
        try:
            with open(self.path, newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        except (UnicodeDecodeError, csv.Error):
            return []

    def _set_aside(self) -> None:
        """Rename a file that does not belong to this training."""
        if not (self.path.is_file() and self.path.stat().st_size):
            return
        names = (f"{self.path.stem}-{n}{self.path.suffix}" for n in itertools.count(1))
        other = next(path for path in map(self.path.with_name, names) if not os.path.lexists(path))
        os.rename(self.path, other)
        warnings.warn(
            f"CSVLogger: {self.path} was not written by this training; renamed it to {other.name}",
            stacklevel=2,
        )

    def _rewrite(self, rows: list[dict[str, str]], step: float) -> None:
        """Replace the file by the complete rows up to a step."""
        earlier = [row for row in rows if _is_before(row, step)]
        write_atomically(self.path, self._text(earlier, head=True).encode())

    def _append(self, record: dict[str, float]) -> None:
        head = self._columns is None
        columns = self._columns or []
        added = [name for name in record if name not in columns]
        self._columns = [*columns, *added]
        try:
            if added and not head:
                self._rewrite(self._rows(), math.inf)
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                file.write(self._text([record], head))
        except OSError as error:
            warnings.warn(
                f"CSVLogger: a row of {self.path} could not be written: {error}",
                stacklevel=2,
            )

    def _text(self, rows: list[Any], head: bool) -> str:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, self._columns or [], restval="", extrasaction="ignore")
        if head:
            writer.writeheader()
        writer.writerows(rows)
        return stream.getvalue()


def _is_due(step: int, every_steps: int, record: dict[str, float]) -> bool:
    """Return whether to write the record of a step."""
    return step % every_steps == 0 or any(name.startswith("val_") for name in record)


def _is_before(row: dict[str, str], step: float) -> bool:
    """Return whether a row is complete and of a step up to the given one."""
    try:
        return None not in row.values() and float(row["step"]) <= step
    except (KeyError, ValueError):  # a crash or a full disk cut the row
        return False


class TensorBoardLogger(Callback):
    """Writes the records as scalars for TensorBoard (the extra `tensorboard`).

    Args:
        folder: Folder of the event files.
        every_steps: Steps from one entry to the next; steps with an evaluation have one too.
    """

    main_only = True

    def __init__(self, folder: str | os.PathLike[str], *, every_steps: int = 1) -> None:
        self.folder = Path(folder)
        self.every_steps = check_integer("TensorBoardLogger", "every_steps", every_steps, least=1)
        self._writer: Any = None

    def on_fit_start(self, trainer: Trainer) -> None:
        """Open an event file."""
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise EmberError(
                "TensorBoardLogger needs TensorBoard; install it with: "
                f"{install_command('tensorboard')}"
            ) from None
        self._writer = EventFileWriter(str(self.folder))

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Write the values every `every_steps` steps, and after an evaluation."""
        if _is_due(trainer.step, self.every_steps, record):
            self._write(trainer.step, {f"train/{name}": record[name] for name in record})

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Write the epoch's values."""
        self._write(trainer.step, {f"epoch/{name}": record[name] for name in record})

    def _write(self, step: int, values: dict[str, float]) -> None:
        import time

        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        skipped = ("step", "epoch")
        parts = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in values.items()
            if tag.rpartition("/")[2] not in skipped
        ]
        self._writer.add_event(
            Event(wall_time=time.time(), step=step, summary=Summary(value=parts))
        )

    def on_fit_end(self, trainer: Trainer) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
