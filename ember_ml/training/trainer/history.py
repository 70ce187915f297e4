"""Records of a training."""

from __future__ import annotations

import itertools
import os
from typing import Any


class History:
    """Losses of all steps and results of all epochs.

    Attributes:
        steps: Record of each step: step, epoch, loss, learning_rate.
        epochs: Record of each epoch: epoch, step, loss, and the evaluation's "val_..." values.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self.epochs: list[dict[str, float]] = []

    @property
    def losses(self) -> list[float]:
        """Loss of each step."""
        return [record["loss"] for record in self.steps]

    def losses_of(self, epoch: int) -> list[float]:
        """Return the losses of an epoch's steps, if it is the last one."""
        newest = itertools.takewhile(lambda r: r["epoch"] == epoch, reversed(self.steps))
        return [record["loss"] for record in newest][::-1]

    def column(self, name: str) -> list[float]:
        """Return a value of all epochs that have it, such as "val_loss"."""
        return [record[name] for record in self.epochs if name in record]

    def state_dict(self) -> dict[str, Any]:
        """Return the records as plain data."""
        return {"steps": self.steps, "epochs": self.epochs}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore records that `state_dict` returned."""
        self.steps = [dict(record) for record in state["steps"]]
        self.epochs = [dict(record) for record in state["epochs"]]

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
