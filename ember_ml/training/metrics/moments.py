"""Metrics of variances: the explained share, the correlation."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.registry import register
from ember_ml.training.losses.reduction import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State


class Moments(Metric):
    """Means and products of deviations of predictions x and targets y.

    Sums of squares would lose the variance of numbers far from zero; so the means of a batch are
    taken away first, and two sets are combined by Chan's formulas.

    Args:
        per_output: whether each position of the last axis has a value of its own, the mean of
            which is the metric; else all elements are taken together.

    Reference: Chan et al., "Algorithms for Computing the Sample Variance", 1983.
    """

    def __init__(self, name: str, per_output: bool) -> None:
        super().__init__(name)
        self.per_output = per_output

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """The moments of a batch."""
        name = type(self).__name__
        inputs.same_shape(name, prediction, target)
        x = wide(prediction)
        width = x.shape[-1] if self.per_output and x.ndim else 1
        mask = inputs.expand_mask(name, mask, target)
        counts = ops.ones_like(x) if mask is None else ops.astype(mask, x.dtype)
        parts = (x, ops.astype(target, x.dtype), counts)
        # along the last axis, where MLX adds in several strands and not one after the other
        return _moments(*(ops.matrix_transpose(ops.reshape(each, (-1, width))) for each in parts))

    def combine(self, first: State, second: State) -> State:
        """The moments of both."""
        n = first["n"] + second["n"]
        share = second["n"] / ops.maximum(n, 1.0)
        x, y = (second[mean] - first[mean] for mean in ("x", "y"))
        out = {"n": n, "x": first["x"] + x * share, "y": first["y"] + y * share}
        for name, product in (("xx", x * x), ("xy", x * y), ("yy", y * y)):
            out[name] = first[name] + second[name] + product * (first["n"] * share)
        out["error"] = first["error"] + second["error"]
        return out

    def result(self, values: dict[str, Any]) -> float:
        """The mean over the outputs."""
        rows = list(zip(*(values[name] for name in values), strict=True))
        found = [self.score(**dict(zip(values, row, strict=True))) for row in rows]
        return sum(found) / len(found) if found else math.nan

    def score(self, **moments: float) -> float:
        """The metric of one output."""
        raise NotImplementedError


def _moments(x: Tensor, y: Tensor, counts: Tensor) -> State:
    """Of (outputs, examples)."""
    n = ops.sum(counts, axis=-1)
    some = ops.maximum(n, 1.0)
    x, y = (ops.where(counts > 0, each, 0.0) for each in (x, y))
    mean_x, mean_y = ops.sum(x, axis=-1) / some, ops.sum(y, axis=-1) / some
    dx, dy = (x - mean_x[:, None]) * counts, (y - mean_y[:, None]) * counts
    return {
        "n": n,
        "x": mean_x,
        "y": mean_y,
        "xx": ops.sum(dx * dx, axis=-1),
        "xy": ops.sum(dx * dy, axis=-1),
        "yy": ops.sum(dy * dy, axis=-1),
        "error": ops.sum(ops.square(x - y), axis=-1),
    }


@register("metrics/r2")
class R2(Moments):
    """1 - the squared error over the variance of the targets.

    Targets that are all equal give 1 if they are met, else 0; a single one gives NaN.

    Args:
        per_output: whether each position of the last axis has a value of its own, the mean of
            which is the metric; else all elements are taken together.
    """

    def __init__(self, per_output: bool = False) -> None:
        super().__init__("r2", per_output)

    def score(self, **moments: float) -> float:
        """1 - error / variance."""
        if moments["n"] < 2:
            return math.nan
        if moments["yy"] == 0:
            return float(moments["error"] == 0)
        return 1.0 - moments["error"] / moments["yy"]


@register("metrics/pearson")
class Pearson(Moments):
    """The correlation of predictions and targets; NaN if one of them does not vary.

    Args:
        per_output: whether each position of the last axis has a value of its own, the mean of
            which is the metric; else all elements are taken together.
    """

    def __init__(self, per_output: bool = False) -> None:
        super().__init__("pearson", per_output)

    def score(self, **moments: float) -> float:
        """The covariance over the standard deviations."""
        scale = math.sqrt(moments["xx"]) * math.sqrt(moments["yy"])
        return max(-1.0, min(1.0, moments["xy"] / scale)) if scale else math.nan
