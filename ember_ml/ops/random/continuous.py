"""Continuous distributions.

`seed` is an integer or a `Generator`; without it the backend's own generator draws.
"""

from __future__ import annotations

import math
from typing import Unpack

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml._core.types import ShapeLike
from ember_ml.ops.random._draw import DrawOptions, Seed, as_shape, check, draw

__all__ = [
    "beta",
    "cauchy",
    "exponential",
    "gamma",
    "gumbel",
    "laplace",
    "normal",
    "orthogonal",
    "rand",
    "randn",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "uniform",
]


class SeededOptions(DrawOptions, total=False):
    """Keyword arguments of all distributions."""

    seed: Seed


def normal(
    shape: ShapeLike,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the normal distribution.

    Args:
        shape: Shape of the result.
        mean: Mean.
        std: Standard deviation, not negative.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("normal", std >= 0, "std must not be negative", std=std)
    return draw(
        "normal", as_shape("normal", shape), mean, std, dtype=dtype, device=device, seed=seed
    )


def uniform(
    shape: ShapeLike,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the uniform distribution on [low, high).

    Args:
        shape: Shape of the result.
        low: Lower bound, included.
        high: Upper bound, excluded.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check(
        "uniform", -math.inf < low < high < math.inf, "low must be below high", low=low, high=high
    )
    return draw(
        "uniform", as_shape("uniform", shape), low, high, dtype=dtype, device=device, seed=seed
    )


def truncated_normal(
    shape: ShapeLike,
    mean: float = 0.0,
    std: float = 1.0,
    lower: float = -2.0,
    upper: float = 2.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the normal distribution truncated to [lower, upper] standard deviations.

    Args:
        shape: Shape of the result.
        mean: Mean before truncation.
        std: Standard deviation before truncation, not negative.
        lower: Lower bound, in standard deviations from the mean.
        upper: Upper bound, in standard deviations from the mean.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("truncated_normal", std >= 0, "std must not be negative", std=std)
    check("truncated_normal", lower < upper, "lower must be below upper", lower=lower, upper=upper)
    shape = as_shape("truncated_normal", shape)
    return draw(
        "truncated_normal", shape, mean, std, lower, upper, dtype=dtype, device=device, seed=seed
    )


def exponential(
    shape: ShapeLike,
    rate: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the exponential distribution with mean 1 / rate.

    Args:
        shape: Shape of the result.
        rate: Rate, positive.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("exponential", rate > 0, "rate must be positive", rate=rate)
    return draw(
        "exponential", as_shape("exponential", shape), rate, dtype=dtype, device=device, seed=seed
    )


def laplace(
    shape: ShapeLike,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the Laplace distribution.

    Args:
        shape: Shape of the result.
        loc: Mean.
        scale: Scale, not negative.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("laplace", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "laplace", as_shape("laplace", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def gumbel(
    shape: ShapeLike,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the Gumbel distribution: loc - scale * log(-log(uniform)).

    Args:
        shape: Shape of the result.
        loc: Mode.
        scale: Scale, not negative.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("gumbel", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "gumbel", as_shape("gumbel", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def cauchy(
    shape: ShapeLike,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the Cauchy distribution.

    Args:
        shape: Shape of the result.
        loc: Median.
        scale: Half width at half maximum, not negative.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("cauchy", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "cauchy", as_shape("cauchy", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def gamma(
    shape: ShapeLike,
    alpha: float,
    beta: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the gamma distribution with mean alpha / beta.

    On MLX the host draws, even without a seed.

    Args:
        shape: Shape of the result.
        alpha: Shape parameter, positive.
        beta: Rate, positive.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check(
        "gamma", alpha > 0 and beta > 0, "alpha and beta must be positive", alpha=alpha, beta=beta
    )
    return draw(
        "gamma", as_shape("gamma", shape), alpha, beta, dtype=dtype, device=device, seed=seed
    )


def beta(
    shape: ShapeLike,
    a: float,
    b: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the beta distribution with mean a / (a + b).

    On MLX the host draws, even without a seed.

    Args:
        shape: Shape of the result.
        a: First shape parameter, positive.
        b: Second shape parameter, positive.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    check("beta", a > 0 and b > 0, "a and b must be positive", a=a, b=b)
    return draw("beta", as_shape("beta", shape), a, b, dtype=dtype, device=device, seed=seed)


def orthogonal(
    shape: ShapeLike,
    gain: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return a random matrix with orthogonal rows, or columns if there are fewer columns.

    Args:
        shape: Shape with at least two axes; those after the first count as columns.
        gain: Length of each row or column.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    shape = as_shape("orthogonal", shape)
    if len(shape) < 2:
        raise ShapeError(f"orthogonal: shape must have at least two axes; got {shape}")
    rows, columns = shape[0], math.prod(shape[1:])
    if rows == 0 or columns == 0:
        return draw("normal", shape, 0.0, 1.0, dtype=dtype, device=device, seed=seed)
    if seed is not None:
        flat = draw("orthogonal", (rows, columns), gain, dtype=dtype, device=device, seed=seed)
        return ops.reshape(flat, shape)
    tall = draw("normal", (max(rows, columns), min(rows, columns)), 0.0, 1.0, device=device)
    q, r = ops.qr(tall)
    q = q * ops.where(ops.diagonal(r) < 0, -gain, gain)
    flat = q if rows >= columns else ops.matrix_transpose(q)
    return ops.astype(ops.reshape(flat, shape), "float32" if dtype is None else dtype)


def randn(*shape: ShapeLike, **options: Unpack[SeededOptions]) -> Tensor:
    """Return samples of the standard normal distribution.

    Args:
        shape: Shape of the result, as one argument or several.
        options: dtype, device and seed, as in `normal`.
    """
    return normal(shape[0] if len(shape) == 1 else shape, **options)


def rand(*shape: ShapeLike, **options: Unpack[SeededOptions]) -> Tensor:
    """Return samples of the uniform distribution on [0, 1).

    Args:
        shape: Shape of the result, as one argument or several.
        options: dtype, device and seed, as in `uniform`.
    """
    return uniform(shape[0] if len(shape) == 1 else shape, **options)


random_normal = normal
random_uniform = uniform
