"""Features of groups: rows combined by index."""

from __future__ import annotations

from typing import Literal

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Size
from ember_ml.nn.features.base import FeatureExtractor
from ember_ml.registry import register

Aggregation = Literal["add", "sum", "mean", "max", "min", "mul", "prod"]


@register("features/scatter")
class ScatterFeatures(FeatureExtractor):
    """Features of groups of rows, such as the nodes of a graph or the events of a user.

    Rows with the same index are one group. Each aggregation adds as many features as a row has. The
    features of a group without rows are 0.

    Args:
        aggr: Aggregation, or several: "add" (or "sum"), "mean", "max", "min", "mul" (or "prod").
        dim_size: Number of groups. Default: the largest index + 1.
        in_features: Number of features of a row. Default: any number.

    Shape: (rows, features), (rows,) -> (groups, features * aggregations).

    Example:
        >>> groups = nn.features.ScatterFeatures(("mean", "max"), in_features=1)
        >>> groups([[1.0], [3.0], [5.0]], [0, 0, 1]).tolist()
        [[2.0, 3.0], [5.0, 5.0]]
        >>> groups.feature_names
        ('mean(x0)', 'max(x0)')
    """

    def __init__(
        self,
        aggr: Aggregation | tuple[Aggregation, ...] = "mean",
        dim_size: Size | None = None,
        in_features: Size | None = None,
    ) -> None:
        self.aggr: tuple[Aggregation, ...] = (aggr,) if isinstance(aggr, str) else aggr
        self.dim_size = dim_size
        self.in_features = in_features

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Aggregation and input feature of each feature."""
        names = super().feature_names
        return tuple(f"{aggr}({name})" for aggr in self.aggr for name in names)

    def extract(self, x: TensorLike, index: TensorLike) -> Tensor:
        """Return the features of each group.

        Args:
            x: Rows, of shape (rows, features).
            index: Group of each row, of shape (rows,).
        """
        x, index = self.as_input(x), self.as_input(index)
        if x.ndim != 2 or index.shape != x.shape[:1]:
            raise ShapeError(
                "ScatterFeatures: expected rows of shape (rows, features) and an index of shape "
                f"(rows,), got {x.shape} and {index.shape}"
            )
        if self.in_features is not None:
            self.check_width(x, self.in_features)
        groups = self.dim_size
        if groups is None:
            groups = int(ops.max(index)) + 1 if index.size else 0
        return ops.concatenate([ops.scatter(x, index, groups, aggr) for aggr in self.aggr], axis=-1)
