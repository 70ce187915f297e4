"""Draws of continuous distributions.

`seed` is an int or a `Generator`; without it the backend's own generator draws.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.ops.random._draw import Seed, Shape, as_shape, check, draw

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


def normal(
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The normal distribution."""
    check("normal", std >= 0, "std must not be negative", std=std)
    return draw(
        "normal", as_shape("normal", shape), mean, std, dtype=dtype, device=device, seed=seed
    )


def uniform(
    shape: Shape,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The uniform distribution from low up to, but not including, high."""
    check(
        "uniform", -math.inf < low < high < math.inf, "low must be below high", low=low, high=high
    )
    return draw(
        "uniform", as_shape("uniform", shape), low, high, dtype=dtype, device=device, seed=seed
    )


def truncated_normal(
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    lower: float = -2.0,
    upper: float = 2.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The normal distribution, kept between mean + lower * std and mean + upper * std."""
    check("truncated_normal", std >= 0, "std must not be negative", std=std)
    check("truncated_normal", lower < upper, "lower must be below upper", lower=lower, upper=upper)
    shape = as_shape("truncated_normal", shape)
    return draw(
        "truncated_normal", shape, mean, std, lower, upper, dtype=dtype, device=device, seed=seed
    )


def exponential(
    shape: Shape,
    rate: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The exponential distribution of mean 1 / rate."""
    check("exponential", rate > 0, "rate must be above 0", rate=rate)
    return draw(
        "exponential", as_shape("exponential", shape), rate, dtype=dtype, device=device, seed=seed
    )


def laplace(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The Laplace distribution: exponential on both sides of loc."""
    check("laplace", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "laplace", as_shape("laplace", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def gumbel(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The Gumbel distribution of maxima: loc - scale * log(-log(uniform))."""
    check("gumbel", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "gumbel", as_shape("gumbel", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def cauchy(
    shape: Shape,
    loc: float = 0.0,
    scale: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The Cauchy distribution with the median loc."""
    check("cauchy", scale >= 0, "scale must not be negative", scale=scale)
    return draw(
        "cauchy", as_shape("cauchy", shape), loc, scale, dtype=dtype, device=device, seed=seed
    )


def gamma(
    shape: Shape,
    alpha: float,
    beta: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The gamma distribution of shape alpha and rate beta: of mean alpha / beta.

    On MLX the host draws, also without a seed.
    """
    check("gamma", alpha > 0 and beta > 0, "alpha and beta must be above 0", alpha=alpha, beta=beta)
    return draw(
        "gamma", as_shape("gamma", shape), alpha, beta, dtype=dtype, device=device, seed=seed
    )


def beta(
    shape: Shape,
    a: float,
    b: float,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """The beta distribution on 0 to 1, of mean a / (a + b).

    On MLX the host draws, also without a seed.
    """
    check("beta", a > 0 and b > 0, "a and b must be above 0", a=a, b=b)
    return draw("beta", as_shape("beta", shape), a, b, dtype=dtype, device=device, seed=seed)


def orthogonal(
    shape: Shape,
    gain: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """A matrix whose rows (or columns, if those are fewer) are orthogonal, of length `gain`.

    Beyond two axes, those after the first count as one.
    """
    shape = as_shape("orthogonal", shape)
    if len(shape) < 2:
        raise ShapeError(f"orthogonal needs two axes or more; the shape is {shape}")
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


def randn(*shape: Any, **options: Any) -> Tensor:
    """The standard normal distribution; the shape in one argument or several."""
    return normal(shape[0] if len(shape) == 1 else shape, **options)


def rand(*shape: Any, **options: Any) -> Tensor:
    """The uniform distribution from 0 to 1; the shape in one argument or several."""
    return uniform(shape[0] if len(shape) == 1 else shape, **options)


random_normal = normal
random_uniform = uniform
