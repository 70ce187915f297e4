"""Principal component analysis."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Self

from pydantic import Field

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Size
from ember_ml.nn.features import _statistics as statistics
from ember_ml.nn.features._statistics import Moments
from ember_ml.nn.features.base import NotFittedError
from ember_ml.nn.features.fitted import FittedExtractor
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register

Share = Annotated[float, Field(gt=0, lt=1)]


@register("features/pca")
class PCA(FittedExtractor):
    r"""Principal component analysis: projection onto the directions of largest variance.

    .. math:: y = (x - \mu) W^T

    The rows of W are eigenvectors of the covariance matrix. Covariances are merged over batches in
    constant memory, (in_features, in_features): a streamed fit equals the fit to the whole data.
    The largest loading of each component is positive, so that the signs do not depend on the
    backend. NaN and infinite values are an error in `fit`.

    Args:
        n_components: Number of components; a number between 0 and 1 selects the fewest components
            that explain more than this share of the variance. Default: as many as there are
            features or rows.
        whiten: Whether to scale the components to unit variance.
        in_features: Number of features. Default: that of the first batch.
        out_features: Number of fitted components; set by `fit`.

    Shape: (..., in_features) -> (..., out_features).

    Example:
        >>> x = ops.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
        >>> pca = nn.features.PCA(1).fit(x)
        >>> [round(value, 3) for value in pca(x)[:, 0].tolist()]
        [-1.414, 0.0, 1.414]
        >>> pca.explained_variance_ratio.tolist()
        [1.0]
    """

    def __init__(
        self,
        n_components: Size | Share | None = None,
        whiten: bool = False,
        in_features: Size | None = None,
        out_features: Size | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.out_features = out_features
        self._rows: Tensor | None = None
        super().__init__(in_features)
        if in_features is not None and isinstance(n_components, int):
            self._check_components(n_components, in_features)

    def build(self, features: int, like: Tensor) -> None:
        """Create the buffers."""
        square = ops.zeros((features, features), dtype=like.dtype, device=like.device)
        self.count = Buffer(ops.astype(square[0, 0], int64))
        self.mean = Buffer(square[0])
        self.m2 = Buffer(square)
        if self.out_features is not None:
            self._set_components(ops.zeros_like(square[: self.out_features]), square[0])

    def _set_components(self, components: Tensor, variances: Tensor) -> None:
        self.components = Buffer(components)
        self.explained_variance = Buffer(variances[: components.shape[0]])
        self.total_variance = Buffer(ops.sum(variances))

    def reset(self) -> None:
        """Forget what was fitted."""
        super().reset()
        self.out_features = None

    def update(self, batch: Tensor) -> None:
        """Merge the covariance of a batch into that of the earlier ones."""
        x = self.prepare(batch)
        if isinstance(self.n_components, int):
            self._check_components(self.n_components, x.shape[1])
        if not x.shape[0]:
            return
        self._rows = x if x.shape[0] < x.shape[1] and not self.has_rows else None
        if not statistics.is_bounded(x):
            statistics.refuse_nonfinite(self, x, hint=False)
            raise ArgumentError(f"PCA: the squares of the values overflow {x.dtype}")
        moments = statistics.merge(Moments(self.count, self.mean, self.m2), _moments(x))
        self.count.become(moments.rows)
        self.mean.become(moments.mean)
        self.m2.become(moments.m2)

    def partial_fit(self, batch: Any) -> Self:
        """Update the fit with one more batch; return the extractor.

        The components are computed as soon as there are as many rows as components.

        Args:
            batch: An array, a tensor, or a tuple whose first part is one.
        """
        self.update(self.as_batch(batch))
        if int(self.count) >= self._least_rows():
            self.finish()
        return self

    def _least_rows(self) -> int:
        return max(2, int(self.n_components or 0))

    def _check_components(self, components: int, features: int) -> None:
        if components > features:
            raise ArgumentError(
                f"PCA: n_components ({components}) must not exceed the number of features "
                f"({features})"
            )

    def finish(self) -> None:
        """Compute the components."""
        rows = int(self.count)
        self.require_rows(rows, self._least_rows())
        variances, components = self._decompose(rows)
        components = components[: self._num_components(variances, rows)]
        self._set_components(_with_signs(components), variances)
        self._rows = None
        self.out_features = components.shape[0]
        self.change_config(out_features=self.out_features)

    def _decompose(self, rows: int) -> tuple[Tensor, Tensor]:
        """Return the variances in descending order, and all components."""
        if self._rows is not None:  # fewer rows than features: their SVD is cheaper
            _, values, components = ops.linearalg.svd(self._rows - self.mean, full_matrices=False)
            return values * values / (rows - 1), components
        variances, vectors = ops.linearalg.eigh(self.m2 / (rows - 1))
        return ops.maximum(ops.flip(variances, axis=0), 0.0), ops.flip(vectors, axis=1).T

    def _num_components(self, variances: Tensor, rows: int) -> int:
        wanted, most = self.n_components, min(rows, variances.shape[0])
        if wanted is None:
            return most
        if wanted >= 1:
            return int(wanted)
        shares = ops.cumsum(variances, axis=0) / ops.sum(variances)
        return min(int(ops.sum(ops.astype(shares <= wanted, int64))) + 1, most)

    @property
    def is_fitted(self) -> bool:
        """Whether the components are computed."""
        return self.out_features is not None and self.has_rows

    def check_fitted(self) -> None:
        """Raise a NotFittedError unless the components are computed."""
        if self.has_rows and not self.is_fitted:
            raise NotFittedError(
                f"PCA has seen {int(self.count)} row(s); it needs at least {self._least_rows()}"
            )
        super().check_fitted()

    @property
    def explained_variance_ratio(self) -> Tensor:
        """Share of the total variance that each component explains."""
        self.check_fitted()
        return self.explained_variance / ops.maximum(self.total_variance, _tiny(self.mean))

    @property
    def singular_values(self) -> Tensor:
        """Singular values of the centered data that belong to the components."""
        self.check_fitted()
        return ops.sqrt(self.explained_variance * (self.count - 1))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the components."""
        self.check_fitted()
        return tuple(f"pca{at}" for at in range(self.components.shape[0]))

    def extract(self, x: TensorLike) -> Tensor:
        """Return the components of the input.

        Args:
            x: Input of shape (..., in_features).
        """
        x = self.check_input(x)
        y = ops.matmul(x, self.components.T) - ops.matmul(self.components, self.mean)
        return y / self._scale() if self.whiten else y

    def inverse(self, x: TensorLike) -> Tensor:
        """Return the nearest input that has the given components.

        Args:
            x: Components of shape (..., out_features).
        """
        self.check_fitted()
        x = self.as_input(x)
        self.check_width(x, self.components.shape[0])
        return ops.matmul(x * self._scale() if self.whiten else x, self.components) + self.mean

    def _scale(self) -> Tensor:
        """Return the standard deviations, bounded from below like those of scikit-learn."""
        std = ops.sqrt(self.explained_variance)
        return ops.maximum(std, ops.finfo(std.dtype).eps)


def _tiny(x: Tensor) -> float:
    return ops.finfo(x.dtype).smallest_normal


def _moments(x: Tensor) -> Moments:
    """Return the number of rows, their mean and their scatter matrix."""
    total, rows = statistics.column_sums(x), x.shape[0]
    squares = ops.matmul(x.T, x)
    m2 = squares - ops.outer(total, total / rows)
    if _is_accurate(squares, m2):
        return Moments(ops.full_like(total[0], rows, dtype=int64), total / rows, m2)
    parts = [_centered_moments(chunk) for chunk in statistics.chunks(x, least=x.shape[1])]
    return functools.reduce(statistics.merge, parts)


def _is_accurate(squares: Tensor, m2: Tensor) -> bool:
    """Return whether the means are small enough to be subtracted after squaring."""
    most = 16 if m2.dtype.bits == 32 else 1024
    return bool(ops.all(ops.diagonal(squares) <= most * ops.diagonal(m2)))


def _centered_moments(x: Tensor) -> Moments:
    deviations, total, shift = statistics.centered(x)
    rows = x.shape[0]
    m2 = ops.matmul(deviations.T, deviations) - ops.outer(total, total / rows)
    return Moments(ops.full_like(shift[0], rows, dtype=int64), shift + total / rows, m2)


def _with_signs(components: Tensor) -> Tensor:
    """Return the components with the sign that makes the largest loading positive."""
    at = ops.argmax(ops.abs(components), axis=1, keepdims=True)
    largest = ops.take_along_axis(components, at, axis=1)
    return ops.where(largest < 0, -components, components)
