"""Discrete distributions, permutations and choices. For `seed` see `continuous`."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import as_dtype, convert_to_tensor
from ember_ml._core.dtype import (
    DEFAULT_INT,
    INTEGER_RANGES,
    EmberDType,
    bool_,
    float32,
    float64,
    int64,
)
from ember_ml._core.errors import ArgumentTypeError, AxisError, ShapeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike
from ember_ml._core.types import ShapeLike
from ember_ml.ops._arguments import as_integer
from ember_ml.ops.random._draw import Seed, as_shape, check, draw

__all__ = ["bernoulli", "categorical", "choice", "permutation", "poisson", "randint", "shuffle"]


def randint(
    low: int,
    high: int | None = None,
    shape: ShapeLike = (),
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return random integers from [low, high).

    Args:
        low: Lower bound, included; the upper bound of a range from 0 if `high` is missing.
        high: Upper bound, excluded.
        shape: Shape of the result.
        dtype: Integer data type of the result. Default: int64.
        device: Device of the result. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    low, high = (0, low) if high is None else (low, high)
    low, high = as_integer("randint", "low", low), as_integer("randint", "high", high)
    check("randint", low < high, "low must be below high", low=low, high=high)
    target = DEFAULT_INT if dtype is None else as_dtype(dtype)
    if not target.is_integer:
        raise ArgumentTypeError(f"randint: dtype must be an integer dtype; got {target}")
    first = max(INTEGER_RANGES[target][0], INTEGER_RANGES[int64][0])
    last = min(INTEGER_RANGES[target][1], INTEGER_RANGES[int64][1] - 1)
    rule = f"bounds of {target} must be in [{first}, {last + 1}]"
    check("randint", first <= low and high - 1 <= last, rule, low=low, high=high)
    return draw(
        "integers", as_shape("randint", shape), low, high, dtype=target, device=device, seed=seed
    )


def bernoulli(
    p: TensorLike = 0.5,
    shape: ShapeLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples that are True with probability p.

    Args:
        p: Probability in [0, 1], or a tensor of probabilities, whose values are not checked.
        shape: Shape of the result; a tensor p broadcasts to it. Default: that of p.
        dtype: Data type of the result. Default: bool.
        device: Device of the result if p is a number. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    if isinstance(p, (bool, int, float)):
        check("bernoulli", 0 <= p <= 1, "p must be in [0, 1]", p=p)
        size = as_shape("bernoulli", () if shape is None else shape)
        drawn = draw("uniform", size, 0.0, 1.0, device=device, seed=seed) < p
    else:
        p = convert_to_tensor(p)
        size = p.shape if shape is None else as_shape("bernoulli", shape)
        drawn = draw("uniform", size, 0.0, 1.0, dtype=_precision(p), like=p, seed=seed) < p
    return drawn if dtype is None or as_dtype(dtype) is bool_ else ops.astype(drawn, dtype)


def _precision(x: Tensor) -> EmberDType:
    return float64 if x.dtype is float64 else float32


def categorical(
    logits: TensorLike, num_samples: int | None = None, axis: int = -1, *, seed: Seed = None
) -> Tensor:
    """Return classes drawn with the probabilities softmax(logits), as int64.

    Args:
        logits: Unnormalized log-probabilities.
        num_samples: Number of samples, along a new last axis. Default: one, without the axis.
        axis: Axis of the classes.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    logits = convert_to_tensor(logits)
    if not -logits.ndim <= axis < logits.ndim:
        raise AxisError(f"categorical: axis={axis} is out of range for shape {logits.shape}")
    if logits.shape[axis] == 0:
        raise ShapeError(f"categorical: axis {axis} of shape {logits.shape} must not be empty")
    scores = ops.moveaxis(logits, axis, -1)
    shape = scores.shape
    if num_samples is not None:
        shape = (*shape[:-1], *as_shape("categorical", num_samples), shape[-1])
        scores = ops.expand_dims(scores, axis=-2)
    noise = draw("gumbel", shape, 0.0, 1.0, dtype=_precision(logits), like=logits, seed=seed)
    return ops.argmax(scores + noise, axis=-1)


def poisson(
    rate: TensorLike,
    shape: ShapeLike | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return samples of the Poisson distribution.

    Args:
        rate: Mean, not negative: a number, or a tensor.
        shape: Shape of the result; a tensor rate broadcasts to it. Default: that of the rate.
        dtype: Data type of the result. Default: int64.
        device: Device of the result if the rate is a number. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    if isinstance(rate, (bool, int, float)):
        check("poisson", 0 <= rate < math.inf, "rate must be finite and not negative", rate=rate)
        size = as_shape("poisson", () if shape is None else shape)
        return draw("poisson", size, float(rate), dtype=dtype, device=device, seed=seed)
    rate = convert_to_tensor(rate)
    size = rate.shape if shape is None else as_shape("poisson", shape)
    rates = rate.native if seed is None else _host(rate)
    return draw("poisson", size, rates, dtype=dtype, like=rate, seed=seed)


def _host(x: Tensor) -> object:
    return runtime.LOADED[x.backend].to_portable(x.native)


def permutation(
    x: int | TensorLike, axis: int = 0, *, device: str | None = None, seed: Seed = None
) -> Tensor:
    """Return a random permutation of 0 to x - 1, or of a tensor's slices along an axis.

    Args:
        x: Number of integers, or a tensor.
        axis: Axis of a tensor's slices.
        device: Device of a permutation of integers. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    if isinstance(x, int):
        check("permutation", x >= 0, "the length must not be negative", x=x)
        return draw("permutation", x, device=device, seed=seed)
    x = convert_to_tensor(x)
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"permutation: axis={axis} is out of range for shape {x.shape}")
    return ops.take(x, draw("permutation", x.shape[axis], like=x, seed=seed), axis=axis)


def shuffle(x: TensorLike, axis: int = 0, *, seed: Seed = None) -> Tensor:
    """Return a tensor with its slices along an axis in random order.

    Args:
        x: Input tensor.
        axis: Axis of the slices.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    return permutation(convert_to_tensor(x), axis, seed=seed)


def choice(
    a: int | TensorLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: TensorLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
    seed: Seed = None,
) -> Tensor:
    """Return a random selection of the integers 0 to a - 1, or of a tensor's slices along an axis.

    Args:
        a: Number of integers to choose from, or a tensor.
        shape: Shape of the selection; it replaces `axis` in the result.
        replace: Whether an element may be chosen more than once.
        p: Unnormalized probability of each element. Default: uniform.
        axis: Axis of a tensor's slices.
        device: Device of a choice of integers. Default: the device of new tensors.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    size = as_shape("choice", shape)
    if isinstance(a, int):
        like = None if p is None else convert_to_tensor(p)
        return _choose(a, size, replace, p, like, device, seed)
    a = convert_to_tensor(a)
    if not -a.ndim <= axis < a.ndim:
        raise AxisError(f"choice: axis={axis} is out of range for shape {a.shape}")
    axis %= a.ndim
    chosen = _choose(a.shape[axis], (math.prod(size),), replace, p, a, None, seed)
    picked = ops.take(a, chosen, axis=axis)
    return ops.reshape(picked, (*a.shape[:axis], *size, *a.shape[axis + 1 :]))


def _choose(
    count: int,
    shape: tuple[int, ...],
    replace: bool,
    p: TensorLike | None,
    like: EmberTensor | None,
    device: str | None,
    seed: Seed,
) -> Tensor:
    total = math.prod(shape)
    enough = total == 0 or (count > 0 if replace else total <= count)
    check(
        "choice",
        enough,
        "too few elements to choose from",
        count=count,
        shape=shape,
        replace=replace,
    )
    if p is not None and like is not None:
        return _choose_weighted(
            count, shape, replace, convert_to_tensor(p, backend=like.backend), seed
        )
    if replace:
        return draw("integers", shape, 0, max(count, 1), device=device, like=like, seed=seed)
    order = draw("permutation", count, device=device, like=like, seed=seed)
    return ops.reshape(order[:total], shape)


def _choose_weighted(
    count: int, shape: tuple[int, ...], replace: bool, p: Tensor, seed: Seed
) -> Tensor:
    total = math.prod(shape)
    if p.shape != (count,):
        raise ShapeError(f"choice: p has shape {p.shape}; expected ({count},), one per element")
    p = ops.astype(p, _precision(p))
    valid = bool(ops.all(p >= 0)) and 0 < float(ops.sum(p)) < math.inf
    check("choice", valid, "p must be nonnegative with a positive finite sum", p=p.tolist()[:8])
    possible = int(ops.sum(ops.astype(p > 0, int64)))
    check(
        "choice",
        replace or total <= possible,
        "too few elements with positive p",
        possible=possible,
    )
    if seed is not None:
        return draw("choice", shape, count, replace, _host(p), like=p, seed=seed)
    if not replace:
        likely = ops.log(ops.where(p > 0, p, 1.0)) + draw("gumbel", (count,), 0.0, 1.0, like=p)
        keys = ops.where(p > 0, likely, -math.inf)
        return ops.reshape(ops.argsort(keys, descending=True)[:total], shape)
    edges = ops.cumulative_sum(p / ops.sum(p))
    spots = draw("uniform", (total,), 0.0, 1.0, like=p)
    return ops.reshape(ops.searchsorted(edges[:-1], spots, side="right"), shape)
