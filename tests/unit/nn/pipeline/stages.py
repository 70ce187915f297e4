"""Stages for the tests of pipelines."""

from __future__ import annotations

from typing import Any, ClassVar

from ember_ml import nn, ops
from ember_ml.nn.features import FeatureExtractor
from ember_ml.nn.parameter import Buffer


class Center(FeatureExtractor):
    """Subtracts the mean of the data that it was fitted to."""

    STATEFUL: ClassVar[bool] = True
    needs_fit = True

    def __init__(self) -> None:
        super().__init__()
        self.total: Any = None
        self.mean: Buffer | None = None
        self.rows = self.passes = 0

    def reset(self) -> None:
        self.total, self.rows = None, 0
        self.passes += 1

    def update(self, batch: Any) -> None:
        total = ops.sum(batch, axis=0)
        self.total = total if self.total is None else self.total + total
        self.rows += batch.shape[0]

    def finish(self) -> None:
        self.mean = Buffer(self.total / self.rows)

    @property
    def is_fitted(self) -> bool:
        return self.mean is not None

    def extract(self, x: Any, mask: Any = None) -> Any:
        self.check_fitted()
        assert self.mean is not None
        x = self.as_input(x)
        self.check_width(x, self.mean.shape[0])
        return x - self.mean

    def inverse(self, x: Any) -> Any:
        assert self.mean is not None
        return self.as_input(x) + self.mean


class WholeOnly(nn.Module):
    """Learns from the whole data, not batch by batch."""

    def __init__(self) -> None:
        self.batches = 0

    def fit(self, data: Any) -> WholeOnly:
        self.batches = sum(1 for _ in data)
        return self

    def forward(self, x: Any) -> Any:
        return x
