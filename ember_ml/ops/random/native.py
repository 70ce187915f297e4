"""Draws by the backends' own generators; `_draw` chooses between them and the host's stream."""

from __future__ import annotations

from ember_ml._core.dispatch import creation
from ember_ml._core.dtype import DEFAULT_INT, EmberDType
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml._core.types import NativeArray

__all__: list[str] = []


def _integer(*args: object, **kwargs: object) -> EmberDType:
    return DEFAULT_INT


@creation
def normal(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the normal distribution.

    Args:
        shape: Shape of the result.
        mean: Mean.
        std: Standard deviation.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def uniform(
    shape: tuple[int, ...],
    low: float,
    high: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the uniform distribution on [low, high).

    Args:
        shape: Shape of the result.
        low: Lower bound, included.
        high: Upper bound, excluded.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def truncated_normal(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    lower: float,
    upper: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the normal distribution truncated to [lower, upper] standard deviations.

    Args:
        shape: Shape of the result.
        mean: Mean before truncation.
        std: Standard deviation before truncation.
        lower: Lower bound, in standard deviations from the mean.
        upper: Upper bound, in standard deviations from the mean.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def exponential(
    shape: tuple[int, ...],
    rate: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the exponential distribution with mean 1 / rate.

    Args:
        shape: Shape of the result.
        rate: Rate.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def laplace(
    shape: tuple[int, ...],
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the Laplace distribution.

    Args:
        shape: Shape of the result.
        loc: Mean.
        scale: Scale.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def gumbel(
    shape: tuple[int, ...],
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the Gumbel distribution.

    Args:
        shape: Shape of the result.
        loc: Mode.
        scale: Scale.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def cauchy(
    shape: tuple[int, ...],
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the Cauchy distribution.

    Args:
        shape: Shape of the result.
        loc: Median.
        scale: Half width at half maximum.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def gamma(
    shape: tuple[int, ...],
    alpha: float,
    beta: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the gamma distribution with shape alpha and rate beta.

    Args:
        shape: Shape of the result.
        alpha: Shape parameter.
        beta: Rate.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation
def beta(
    shape: tuple[int, ...],
    a: float,
    b: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the beta distribution.

    Args:
        shape: Shape of the result.
        a: First shape parameter.
        b: Second shape parameter.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
    """


@creation(dtype=_integer)
def integers(
    shape: tuple[int, ...],
    low: int,
    high: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return random integers from [low, high).

    Args:
        shape: Shape of the result.
        low: Lower bound, included.
        high: Upper bound, excluded.
        dtype: Data type of the result. Default: int64.
        device: Device of the result. Default: the device of new tensors.
    """


@creation(dtype=_integer)
def poisson(
    shape: tuple[int, ...],
    rate: float | NativeArray,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return samples of the Poisson distribution.

    Args:
        shape: Shape of the result.
        rate: Mean: a number, or a native array that broadcasts to the shape.
        dtype: Data type of the result. Default: int64.
        device: Device of the result. Default: the device of new tensors.
    """


@creation(dtype=_integer)
def permutation(
    length: int, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Return 0 to length - 1 in random order.

    Args:
        length: Number of integers.
        dtype: Data type of the result. Default: int64.
        device: Device of the result. Default: the device of new tensors.
    """
