"""Windows of time series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.data.conversion import Indices, Pytree, to_host
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_index, check_integer


class SeriesWindows(Dataset):
    """Sliding windows of a time series, each with the value that follows it.

    Args:
        inputs: Array (time,) or (time, features).
        targets: Array whose first axis is the time. Default: the inputs, which are forecast.
        window: Number of positions of a window.
        horizon: Number of positions from the end of the window to its target. Default: 1, the next
            one.
        stride: Number of positions between two windows. Default: 1.
        where: Name of the series in errors. Default: "SeriesWindows".

    Example:
        >>> from ember_ml.data import SeriesWindows
        >>> windows = SeriesWindows([0.0, 1.0, 2.0, 3.0, 4.0], window=3)
        >>> inputs, targets = windows.batch([0, 1])
        >>> inputs.tolist(), targets.tolist()
        ([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]], [3.0, 4.0])
    """

    def __init__(
        self,
        inputs: Any,
        targets: Any = None,
        *,
        window: int,
        horizon: int = 1,
        stride: int = 1,
        where: str = "SeriesWindows",
    ) -> None:
        self.inputs = to_host(inputs)
        self.targets = self.inputs if targets is None else to_host(targets)
        if len(self.inputs) != len(self.targets):
            raise ArgumentError(
                f"{where}: inputs and targets must have equal lengths, not {len(self.inputs)} and "
                f"{len(self.targets)}"
            )
        self.window = check_integer(where, "window", window, 1)
        self.horizon = check_integer(where, "horizon", horizon, 1)
        self.stride = check_integer(where, "stride", stride, 1)
        if len(self.inputs) < window + horizon:
            raise ArgumentError(
                f"{where}: {len(self.inputs)} positions are too few for a window of {window} and a "
                f"target {horizon} after it"
            )

    def __len__(self) -> int:
        return 1 + (len(self.inputs) - self.window - self.horizon) // self.stride

    def __getitem__(self, index: int) -> Pytree:
        start = check_index("SeriesWindows", index, len(self)) * self.stride
        end = start + self.window
        return self.inputs[start:end], self.targets[end + self.horizon - 1]

    def batch(self, indices: Indices) -> Pytree:
        """Return the windows at the indices as one batch.

        Args:
            indices: Array or sequence of integers.
        """
        starts = np.array([check_index("SeriesWindows", at, len(self)) for at in indices], np.int64)
        ends = starts * self.stride + self.window
        positions = ends[:, None] + np.arange(-self.window, 0)
        return self.inputs[positions], self.targets[ends + self.horizon - 1]
