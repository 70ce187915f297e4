"""History of a self-training run: one record for each round."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import read_regular, write_atomically

Record = dict[str, Any]


class SelfTrainingHistory(Sequence[Record]):
    """Records of all rounds; round 0 is the supervised model.

    A record has

    - `round`, `loss` (of the last step), `accepted`, and `note` if the run ended there;
    - `selected`: number of pseudo-labels, `classes`: how many of each class, and, where true labels
      are known, `known` and `correct` of them;
    - `pool_accuracy` on the unlabeled data, where true labels are known;
    - `val_accuracy`, `val_loss`, `ece` (expected calibration error) and `temperature` of the
      validation data, and `test_accuracy` of the test data, if there are any.

    Args:
        records: The records.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = [dict(record) for record in records]

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: Any) -> Any:
        return self.records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def column(self, name: str) -> list[Any]:
        """Return a value of all rounds that have it, such as "val_accuracy".

        Args:
            name: Name of the value.
        """
        return [record[name] for record in self.records if record.get(name) is not None]

    @property
    def best(self) -> Record:
        """Record of the round whose model is the result."""
        return [record for record in self.records if record["accepted"]][-1]

    def add(self, record: Mapping[str, Any], path: Path) -> None:
        """Add a record, and write all records to a file atomically.

        Args:
            record: Record of a round.
            path: The file.
        """
        records = [*self.records, dict(record)]
        text = json.dumps(records, indent=2)
        write_atomically(path, f"{text}\n".encode())
        self.records = records

    @classmethod
    def read(cls, path: Path) -> SelfTrainingHistory:
        """Return the history in a file; an empty one if there is no file.

        Args:
            path: The file.
        """
        if not path.exists():
            return cls()
        records = read_json(path)
        if not (isinstance(records, list) and all(isinstance(each, dict) for each in records)):
            raise not_own(path)
        return cls(records)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Plot accuracy, pseudo-labels and calibration of the rounds; return the figure.

        Args:
            path: Image file to write. Default: none.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 3.4), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        self._curves(left, ("val_accuracy", "test_accuracy", "pool_accuracy"))
        self._bars(middle)
        self._curves(right, ("ece",))
        left.set(ylabel="accuracy")
        middle.set(ylabel="pseudo-labels")
        right.set(ylabel="expected calibration error")
        right.set_visible(bool(self.column("ece")))
        if any(value != 1.0 for value in self.column("temperature")):
            other = right.twinx()
            self._curves(other, ("temperature",), color="tab:orange")
            other.set(ylabel="temperature")
        for axes in (left, middle, right):
            axes.set(xlabel="round")
            axes.spines[["top", "right"]].set_visible(False)
            axes.xaxis.get_major_locator().set_params(integer=True)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)
        if path is not None:
            figure.savefig(path, dpi=144)
        return figure

    def _curves(self, axes: Any, names: Sequence[str], **style: Any) -> None:
        for name in names:
            points = [(r["round"], r[name]) for r in self.records if r.get(name) is not None]
            if points:
                axes.plot(
                    *zip(*points, strict=True), marker="o", label=name.replace("_", " "), **style
                )
        for record in self.records:
            if not record["accepted"]:
                axes.axvline(record["round"], color="0.8", lw=6, zorder=0)

    def _bars(self, axes: Any) -> None:
        rounds = [record["round"] for record in self.records]
        known = [record.get("known") or 0 for record in self.records]
        right = [record.get("correct") or 0 for record in self.records]
        wrong = [a - b for a, b in zip(known, right, strict=True)]
        rest = [record["selected"] - n for record, n in zip(self.records, known, strict=True)]
        below = [0] * len(rounds)
        for name, counts in (("right", right), ("wrong", wrong), ("not known", rest)):
            if any(counts):
                axes.bar(rounds, counts, bottom=below, label=name)
                below = [a + b for a, b in zip(below, counts, strict=True)]

    def __repr__(self) -> str:
        return f"SelfTrainingHistory({len(self)} rounds)"


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a run; raise an error if it is not valid JSON.

    Args:
        path: The file.
    """
    try:
        return json.loads(read_regular(path))
    except (ValueError, RecursionError):
        raise not_own(path) from None


def not_own(path: Path) -> ArgumentError:
    """Return the error for a file that a run did not write, or that is damaged.

    Args:
        path: The file.
    """
    return ArgumentError(
        f"SelfTrainingPipeline: {path} is damaged, or was not written by a self-training run; "
        "move it, or choose another folder"
    )
