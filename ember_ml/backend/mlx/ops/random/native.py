"""Random numbers from MLX's generator, or from the host for distributions that it lacks."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml._core.random_stream import Stream, below, normal_cdf

_STREAM = Stream()


def seed(value: int) -> None:
    """Set the seed."""
    mx.random.seed(value)
    _STREAM.reseed(value)


def get_state() -> dict[str, object]:
    """Return the state as JSON-compatible data."""
    state: Any = mx.random.state
    return {"key": state[0].tolist(), "host": _STREAM.state}


def set_state(state: mx.array) -> None:
    """Restore a state; MLX's state is its seed, split into two 32-bit halves."""
    high, low = state["key"]
    mx.random.seed((high << 32) | low)
    _STREAM.state = state["host"]


def normal(
    shape: tuple[int, ...], mean: float, std: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    return mx.random.normal(shape, loc=mean, scale=std).astype(dtype)


def uniform(
    shape: tuple[int, ...], low: float, high: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    values = mx.random.uniform(low, high, shape)
    if (low, high) == (0.0, 1.0) and dtype == mx.float32:
        return values
    return mx.minimum(values, below(high, str(dtype).removeprefix("mlx.core."))).astype(dtype)


def truncated_normal(
    shape: tuple[int, ...],
    mean: float,
    std: float,
    lower: float,
    upper: float,
    *,
    dtype: mx.Dtype,
    device: str,
) -> mx.array:
    """Draw by the inverse CDF; on the host in the tails, where erf rounds to 1."""
    if normal_cdf(upper) - normal_cdf(lower) < 0.01:
        values = mx.array(_STREAM.truncated_normal(shape, 0.0, 1.0, lower, upper, dtype="float32"))
    else:
        values = mx.random.truncated_normal(lower, upper, shape)
    return (mean + std * values).astype(dtype)


def exponential(shape: tuple[int, ...], rate: float, *, dtype: mx.Dtype, device: str) -> mx.array:
    """Draw from the exponential distribution with mean 1 / rate."""
    return (mx.log1p(-mx.random.uniform(shape=shape)) * (-1.0 / rate)).astype(dtype)


def laplace(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    return mx.random.laplace(shape, loc=loc, scale=scale).astype(dtype)


def gumbel(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    values = mx.maximum(mx.random.uniform(shape=shape), 2.0**-25)
    return (loc - scale * mx.log(-mx.log(values))).astype(dtype)


def cauchy(
    shape: tuple[int, ...], loc: float, scale: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    return (loc + scale * mx.tan(math.pi * (mx.random.uniform(shape=shape) - 0.5))).astype(dtype)


def gamma(
    shape: tuple[int, ...], alpha: float, beta: float, *, dtype: mx.Dtype, device: str
) -> mx.array:
    """Draw on the host."""
    return mx.array(_STREAM.gamma(shape, alpha, beta, dtype="float32")).astype(dtype)


def beta(shape: tuple[int, ...], a: float, b: float, *, dtype: mx.Dtype, device: str) -> mx.array:
    """Draw on the host."""
    return mx.array(_STREAM.beta(shape, a, b, dtype="float32")).astype(dtype)


def poisson(shape: tuple[int, ...], rate: Any, *, dtype: mx.Dtype, device: str) -> mx.array:
    """Draw on the host."""
    if isinstance(rate, mx.array):
        rate = np.array(rate.astype(mx.float32))
    return mx.array(_STREAM.poisson(shape, rate, dtype="int64")).astype(dtype)


def integers(
    shape: tuple[int, ...], low: int, high: int, *, dtype: mx.Dtype, device: str
) -> mx.array:
    """Draw 64 bits in parts; MLX draws only 24 random bits at a time."""
    bits = mx.zeros(shape, mx.uint64)
    for _ in range(4):
        bits = bits * 65536 + mx.random.randint(0, 65536, shape).astype(mx.uint64)
    span = mx.array(np.array(high - low, np.uint64))
    return ((bits % span).astype(mx.int64) + mx.array(low, mx.int64)).astype(dtype)


def permutation(length: int, *, dtype: mx.Dtype, device: str) -> mx.array:
    return mx.random.permutation(length).astype(dtype)
