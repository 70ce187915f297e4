"""Influence of a tensor on a result: integrated gradients and occlusion."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.autodiff.transforms.gradients import grad
from ember_ml.autodiff.values import is_differentiable

Method: TypeAlias = Literal["integrated_gradients", "occlusion"]
Function: TypeAlias = Callable[[Tensor], Tensor]


def attribute(
    function: Function,
    source: Tensor,
    method: Method | None,
    baseline: TensorLike | None,
    axis: int | Sequence[int] | None,
    steps: int,
) -> Tensor:
    """Return the influence of each part of a source on a number.

    Args:
        function: Function from the source to the number.
        source: Value of the source.
        method: Name of the method.
        baseline: Value that stands for absence. Default: zeros.
        axis: Axes of the parts; the other axes are one part. Default: every element is a part.
        steps: Number of gradients of integrated gradients.
    """
    if method not in get_args(Method):
        names = " or ".join(f"method={name!r}" for name in get_args(Method))
        raise ArgumentError(f"influence of a tensor: name the method, {names}, not {method!r}")
    if steps < 1:
        raise ArgumentError(f"influence: steps must be at least 1, not {steps}")
    axes = _axes(axis, source.ndim)
    base = _baseline(baseline, source)
    if method == "occlusion":
        return occlusion(function, source, base, axes)
    others = tuple(each for each in range(source.ndim) if each not in axes)
    parts = integrated_gradients(function, source, base, steps)
    return ops.sum(parts, axis=others) if others else parts


def integrated_gradients(function: Function, x: Tensor, baseline: Tensor, steps: int) -> Tensor:
    """Return (x - baseline) times the mean gradient on the straight line between the two.

    The sum over all elements is f(x) - f(baseline), up to the error of the quadrature
    (Gauss-Legendre). Reference: Sundararajan et al., "Axiomatic attribution for deep networks",
    2017.

    Args:
        function: Function from a tensor to a number.
        x: Input.
        baseline: Start of the line.
        steps: Number of gradients.
    """
    if not is_differentiable(x):
        raise ArgumentTypeError(
            f"influence: integrated gradients need a floating-point source, not {x.dtype}; use the "
            "embeddings instead of token ids, or method='occlusion'"
        )
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    slope = grad(function)
    change = x - baseline
    total = ops.zeros_like(x)
    for node, weight in zip(nodes, weights, strict=True):
        total = total + slope(baseline + change * float((node + 1) / 2)) * float(weight / 2)
    return change * total


def occlusion(function: Function, x: Tensor, baseline: Tensor, axes: Sequence[int]) -> Tensor:
    """Return f(x) minus f(x with one part replaced by the baseline), for each part.

    Args:
        function: Function from a tensor to a number.
        x: Input.
        baseline: Value of the replaced part.
        axes: Axes of the parts.
    """
    shape = [x.shape[axis] for axis in axes]
    whole = function(x)
    changes = []
    for index in itertools.product(*map(range, shape)):
        part: list[slice | int] = [slice(None)] * x.ndim
        for axis, at in zip(axes, index, strict=True):
            part[axis] = slice(at, at + 1)
        chosen = np.zeros(x.shape, bool)
        chosen[tuple(part)] = True
        mask = convert_to_tensor(chosen, backend=x._backend)
        changes.append(whole - function(ops.where(mask, baseline, x)))
    if not changes:
        return ops.reshape(ops.zeros_like(x), shape)
    return ops.reshape(ops.stack(changes), shape)


def _axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -ndim <= each < ndim for each in axes):
        raise ArgumentError(f"influence: axis {axis} is out of range for a source of {ndim} axes")
    return tuple(sorted({each % ndim for each in axes}))


def _baseline(baseline: TensorLike | None, source: Tensor) -> Tensor:
    if baseline is None:
        return ops.zeros_like(source)
    base = convert_to_tensor(baseline, dtype=source.dtype, backend=source._backend)
    try:
        return ops.broadcast_to(base, source.shape)
    except ValueError:
        raise ShapeError(
            f"influence: the baseline {base.shape} does not fit the source {source.shape}"
        ) from None
