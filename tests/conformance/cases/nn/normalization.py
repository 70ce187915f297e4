"""Rows for `ember_ml.ops.nn`: normalization."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, axis_cases, case, positive, real


def affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def along(vector, x, axis):
    return None if vector is None else vector.reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim))


def layer_norm(x, weight=None, bias=None, eps=1e-5, axis=-1):
    axes = tuple(range(axis % x.ndim, x.ndim))
    scaled = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return affine(scaled, weight, bias)


def rms_norm(x, weight=None, eps=1e-6, axis=-1):
    axes = tuple(range(axis % x.ndim, x.ndim))
    return affine(x / np.sqrt((x * x).mean(axes, keepdims=True) + eps), weight, None)


def group_norm(x, weight=None, bias=None, num_groups=1, eps=1e-5):
    if x.size == 0:
        return x
    grouped = layer_norm(x.reshape(x.shape[0], num_groups, -1), eps=eps).reshape(x.shape)
    return affine(grouped, along(weight, x, 1), along(bias, x, 1))


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    return group_norm(x, weight, bias, x.shape[1], eps)


def batch_norm(x, mean, variance, weight=None, bias=None, eps=1e-5, axis=1):
    mean, variance, weight, bias = (along(v, x, axis) for v in (mean, variance, weight, bias))
    return affine((x - mean) / np.sqrt(variance + eps), weight, bias)


def batch_norm_train(x, weight=None, bias=None, eps=1e-5, axis=1):
    axes = tuple(other for other in range(x.ndim) if other != axis % x.ndim)
    mean, variance = x.mean(axes), x.var(axes)
    return batch_norm(x, mean, variance, weight, bias, eps, axis), mean, variance


def normalize(x, p=2.0, axis=-1, eps=1e-12):
    return x / np.maximum(np.linalg.norm(x, p, axis, keepdims=True), eps)


N = "nn.normalization."
for shape in ((5,), (1,), (2, 3, 8), (0, 4), (2, 0, 4), (3, 1)):
    case(N + "layer_norm", real(*shape), reference=layer_norm)
    case(N + "rms_norm", real(*shape), reference=rms_norm)
case(N + "layer_norm", real(3, 4, 6), real(6), real(6), reference=layer_norm)
case(N + "layer_norm", real(3, 4, 6), None, real(6), reference=layer_norm)
case(N + "layer_norm", real(3, 4, 6), real(4, 6), real(4, 6), reference=layer_norm, axis=-2)
case(N + "layer_norm", real(3, 4, 6), real(3, 4, 6), reference=layer_norm, axis=0, eps=0.1)
case(N + "layer_norm", real(4, 6, transposed=True), real(6), real(6), reference=layer_norm)
case(N + "rms_norm", real(3, 4, 6), real(6), reference=rms_norm)
case(N + "rms_norm", real(3, 4, 6), real(4, 6), reference=rms_norm, axis=1, eps=0.1)
case(N + "rms_norm", real(4, 6, transposed=True), real(6), reference=rms_norm)
# a large mean and a small variance, which E[x^2] - E[x]^2 would lose
near = {"transform": lambda x: 1000 + np.round(x * 4) / 4}
case(N + "layer_norm", real(3, 16, **near), dtypes=("float32", "float64"), reference=layer_norm)
# squares beyond float16
case(N + "layer_norm", real(3, 16, low=-6e4, high=6e4), dtypes=FLOATS, reference=layer_norm)
case(N + "rms_norm", real(3, 16, low=-6e4, high=6e4), dtypes=FLOATS, reference=rms_norm)

for shape, groups in (
    ((2, 6), 3),
    ((2, 6, 5), 2),
    ((2, 6, 3, 2), 6),
    ((0, 4, 3), 2),
    ((2, 4, 1), 4),
):
    channels = shape[1]
    case(N + "group_norm", real(*shape), reference=group_norm, num_groups=groups)
    case(
        N + "group_norm",
        real(*shape),
        real(channels),
        real(channels),
        reference=group_norm,
        num_groups=groups,
        eps=1e-3,
    )
case(N + "group_norm", real(5, 4, transposed=True), reference=group_norm, num_groups=2)
for shape in ((2, 3, 5), (2, 3, 4, 2), (0, 3, 2), (1, 1, 1)):
    case(N + "instance_norm", real(*shape), reference=instance_norm)
    case(N + "instance_norm", real(*shape), real(shape[1]), real(shape[1]), reference=instance_norm)

for shape, axis in (((4, 3), 1), ((4, 3, 5), 1), ((4, 5, 3), -1), ((3, 4), 0), ((0, 3), 1)):
    count = shape[axis]
    statistics = (real(count), positive(count))
    case(N + "batch_norm", real(*shape), *statistics, reference=batch_norm, axis=axis)
    case(
        N + "batch_norm",
        real(*shape),
        *statistics,
        real(count),
        real(count),
        reference=batch_norm,
        axis=axis,
        eps=0.1,
    )
    if 0 not in shape:
        case(N + "batch_norm_train", real(*shape), reference=batch_norm_train, axis=axis)
        case(
            N + "batch_norm_train",
            real(*shape),
            real(count),
            real(count),
            reference=batch_norm_train,
            axis=axis,
            eps=0.1,
        )
single = real(1, 3, low=-0.5, high=0.5)
case(N + "batch_norm_train", single, reference=batch_norm_train, dtypes=FLOATS)

axis_cases(N + "normalize", normalize)
for p in (1, 3.0, float("inf")):
    case(N + "normalize", real(3, 4), reference=normalize, p=p)
case(N + "normalize", real(2, 3, transform=lambda x: 0 * x), reference=normalize)
