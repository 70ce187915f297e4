"""Metrics of variances and covariances: R2 and Pearson correlation."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.registry import register
from ember_ml.training.losses.base import wide
from ember_ml.training.metrics import inputs
from ember_ml.training.metrics.base import Metric
from ember_ml.training.metrics.state import State, Values


class Moments(Metric[float]):
    """Base class of metrics of the means and covariances of predictions x and targets y.

    Plain sums of squares lose the variance of numbers far from zero. The mean of each batch is
    therefore subtracted first, and batches are combined by Chan's formulas.

    Args:
        name: Name of the metric in logs.
        per_output: Whether to average the metric over the positions of the last axis; otherwise
            all elements count as one output.

    Reference: Chan et al., "Algorithms for Computing the Sample Variance", 1983.
    """

    def __init__(self, name: str, per_output: bool) -> None:
        super().__init__(name)
        self.per_output = per_output

    def measure(self, prediction: Tensor, target: Tensor, mask: Tensor | None) -> State:
        """Return the moments of a batch."""
        name = type(self).__name__
        inputs.same_shape(name, prediction, target)
        x = wide(prediction)
        width = x.shape[-1] if self.per_output and x.ndim else 1
        mask = inputs.expand_mask(name, mask, target)
        counts = ops.ones_like(x) if mask is None else ops.astype(mask, x.dtype)
        parts = (x, ops.astype(target, x.dtype), counts)
        # The last axis is reduced, because MLX then uses several partial sums, which round less.
        return _moments(*(ops.matrix_transpose(ops.reshape(each, (-1, width))) for each in parts))

    def combine(self, first: State, second: State) -> State:
        """Return the moments of both sets together."""
        n = first["n"] + second["n"]
        weight = second["n"] / ops.maximum(n, 1.0)
        x, y = (second[mean] - first[mean] for mean in ("x", "y"))
        out = {"n": n, "x": first["x"] + x * weight, "y": first["y"] + y * weight}
        for name, product in (("xx", x * x), ("xy", x * y), ("yy", y * y)):
            out[name] = first[name] + second[name] + product * (first["n"] * weight)
        out["error"] = first["error"] + second["error"]
        return out

    def result(self, values: Values) -> float:
        """Return the mean over the outputs."""
        rows = list(zip(*(values[name] for name in values), strict=True))
        scores = [self.score(**dict(zip(values, row, strict=True))) for row in rows]
        return inputs.divide(sum(scores), len(scores), math.nan)

    def score(self, **moments: float) -> float:
        """Return the metric of one output.

        Args:
            **moments: Count `n`, means `x` and `y`, sums of products of deviations `xx`, `xy` and
                `yy`, and sum of squared errors `error`.
        """
        raise NotImplementedError


def _moments(x: Tensor, y: Tensor, counts: Tensor) -> State:
    """Return the moments of arrays (outputs, examples)."""
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
    """Coefficient of determination: 1 - squared error / variance of the targets.

    If all targets are equal it is 1 for exact predictions, else 0. It is NaN for a single target.

    Args:
        per_output: Whether to average the metric over the positions of the last axis; otherwise
            all elements count as one output.
    """

    def __init__(self, per_output: bool = False) -> None:
        super().__init__("r2", per_output)

    def score(self, **moments: float) -> float:
        """Return 1 - error / variance."""
        if moments["n"] < 2:
            return math.nan
        if moments["yy"] == 0:
            return float(moments["error"] == 0)
        return 1.0 - moments["error"] / moments["yy"]


@register("metrics/pearson")
class Pearson(Moments):
    """Pearson correlation of predictions and targets; NaN if either is constant.

    Args:
        per_output: Whether to average the metric over the positions of the last axis; otherwise
            all elements count as one output.
    """

    def __init__(self, per_output: bool = False) -> None:
        super().__init__("pearson", per_output)

    def score(self, **moments: float) -> float:
        """Return the covariance divided by the standard deviations."""
        scale = math.sqrt(moments["xx"]) * math.sqrt(moments["yy"])
        return max(-1.0, min(1.0, moments["xy"] / scale)) if scale else math.nan
