"""Draws of the backends' own generators. `_draw` picks between them and the host's stream."""

from __future__ import annotations

from typing import Any

from ember_ml._core.dispatch import creation
from ember_ml._core.dtype import DEFAULT_INT, EmberDType
from ember_ml._core.tensor import DTypeLike, Tensor

__all__: list[str] = []

Shape = tuple[int, ...]


def _integer(*args: Any, **kwargs: Any) -> EmberDType:
    return DEFAULT_INT


@creation
def normal(
    shape: Shape,
    mean: float,
    std: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The normal distribution."""


@creation
def uniform(
    shape: Shape,
    low: float,
    high: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """From low up to, but not including, high."""


@creation
def truncated_normal(
    shape: Shape,
    mean: float,
    std: float,
    lower: float,
    upper: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The normal distribution between mean + lower * std and mean + upper * std."""


@creation
def exponential(
    shape: Shape, rate: float, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The exponential distribution of mean 1 / rate."""


@creation
def laplace(
    shape: Shape,
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The Laplace distribution."""


@creation
def gumbel(
    shape: Shape,
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The Gumbel distribution."""


@creation
def cauchy(
    shape: Shape,
    loc: float,
    scale: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The Cauchy distribution."""


@creation
def gamma(
    shape: Shape,
    alpha: float,
    beta: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """The gamma distribution of shape alpha and rate beta."""


@creation
def beta(
    shape: Shape, a: float, b: float, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """The beta distribution."""


@creation(dtype=_integer)
def integers(
    shape: Shape, low: int, high: int, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Integers from low up to, but not including, high."""


@creation(dtype=_integer)
def poisson(
    shape: Shape, rate: Any, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """Counts at a rate: a number, or a native array that broadcasts to the shape."""


@creation(dtype=_integer)
def permutation(
    length: int, *, dtype: DTypeLike | None = None, device: str | None = None
) -> Tensor:
    """0 to length - 1 in random order."""
