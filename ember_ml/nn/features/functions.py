"""Functions that create extractors, and stateless feature operations."""

from __future__ import annotations

from typing import Literal

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml._core.types import DTypeLike
from ember_ml.nn.features.normalization import Mode, Normalize
from ember_ml.nn.features.principal_components import PCA
from ember_ml.nn.features.scaling import Standardize
from ember_ml.ops import scatter as scatter


def pca(n_components: float | None = None, *, whiten: bool = False) -> PCA:
    """Return a `PCA` to be fitted.

    Args:
        n_components: Number of components, or the share of the variance that they explain.
        whiten: Whether to scale the components to unit variance.

    Example:
        >>> nn.features.pca().fit([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]).explained_variance.shape
        (2,)
    """
    return PCA(n_components, whiten=whiten)


def standardize_features(
    *, eps: float = 1e-8, nan: Literal["raise", "ignore", "mean"] = "raise"
) -> Standardize:
    """Return a `Standardize` to be fitted.

    Args:
        eps: Standard deviation up to which a feature counts as constant.
        nan: What to do with NaN: "raise", "ignore" or "mean".
    """
    return Standardize(eps=eps, nan=nan)


def normalize_features(
    mode: Mode = "minmax",
    *,
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002
    nan: Literal["raise", "ignore"] = "raise",
) -> Normalize:
    """Return a `Normalize` to be fitted.

    Args:
        mode: "minmax", "l2" or "robust".
        range: Lower and upper end of the output of "minmax".
        nan: What to do with NaN: "raise" or "ignore".
    """
    return Normalize(mode, range=range, nan=nan)


def one_hot(
    x: TensorLike, num_classes: int | None = None, axis: int = -1, dtype: DTypeLike | None = None
) -> Tensor:
    """Return a one-hot encoding along a new axis.

    Args:
        x: Classes: integers from 0.
        num_classes: Length of the new axis. Values outside [0, num_classes) return zeros only.
            Default: the largest class + 1; negative classes are then an error.
        axis: Position of the new axis.
        dtype: Data type of the result. Default: float32.

    Example:
        >>> nn.features.one_hot([0, 2]).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    x = convert_to_tensor(x)
    if num_classes is None:
        if x.size and int(ops.min(x)) < 0:
            raise ArgumentError(f"one_hot: classes must not be negative, got {int(ops.min(x))}")
        num_classes = int(ops.max(x)) + 1 if x.size else 0
    return ops.one_hot(x, num_classes, axis, dtype)
