"""Rows for `ember_ml.ops.nn`: activations, gates, softmax."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.table import FLOATS, axis_cases, case, real, unary_cases
from tests.conformance.torch_reference import by_torch

SIMPLE = {
    "celu": F.celu,
    "elu": F.elu,
    "gelu": F.gelu,
    "hard_shrink": F.hardshrink,
    "hard_sigmoid": F.hardsigmoid,
    "hard_swish": F.hardswish,
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
    "mish": F.mish,
    "relu6": F.relu6,
    "selu": F.selu,
    "silu": F.silu,
    "soft_shrink": F.softshrink,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
}
for name, function in SIMPLE.items():
    unary_cases(f"nn.activations.{name}", by_torch(function), special=False)
    case(
        f"nn.activations.{name}",
        real(9, low=-1e4, high=1e4),
        dtypes=FLOATS,
        reference=by_torch(function),
    )
    nan = real(2, transform=lambda x: x * np.nan)
    case(f"nn.activations.{name}", nan, dtypes=FLOATS, reference=by_torch(function))

unary_cases("nn.activations.relu", lambda x: np.maximum(x, 0))

PARAMETERS = [
    ("celu", F.celu, {"alpha": 0.5}, {}),
    ("elu", F.elu, {"alpha": 2.0}, {}),
    ("hard_shrink", F.hardshrink, {"threshold": 1.5}, {"threshold": "lambd"}),
    (
        "hardtanh",
        F.hardtanh,
        {"min_value": -0.25, "max_value": 2.0},
        {"min_value": "min_val", "max_value": "max_val"},
    ),
    ("leaky_relu", F.leaky_relu, {"negative_slope": 0.3}, {}),
    ("soft_shrink", F.softshrink, {"threshold": 1.5}, {"threshold": "lambd"}),
    ("threshold", F.threshold, {"threshold": 0.5, "value": -2.0}, {}),
]
for name, function, options, names in PARAMETERS:
    case(f"nn.activations.{name}", real(4, 5), reference=by_torch(function, **names), **options)

for inputs in (real(11), real(9, low=-1e4, high=1e4, dtype="float32")):
    case(
        "nn.activations.gelu",
        inputs,
        dtypes=FLOATS if inputs.dtype is None else ("float32",),
        reference=lambda x, approximate: by_torch(F.gelu)(x, approximate="tanh"),
        approximate=True,
    )


def swiglu(x, axis=-1):
    first, second = np.split(x, 2, axis)
    return first / (1 + np.exp(-first)) * second


def prelu(x, weight, axis=1):
    if weight.size > 1:
        weight = weight.reshape(-1, *(1,) * (x.ndim - 1 - axis % x.ndim))
    return np.where(x > 0, x, weight * x)


for axis in (-1, 0, 1, 2):
    case("nn.gating.glu", real(2, 4, 6), reference=by_torch(F.glu, axis="dim"), axis=axis)
    case("nn.gating.swiglu", real(2, 4, 6), reference=swiglu, axis=axis)
case("nn.gating.glu", real(0, 4), reference=by_torch(F.glu))
case("nn.gating.swiglu", real(4, 2, transposed=True), reference=swiglu, axis=1)
case("nn.gating.prelu", real(2, 3, 4), real(3), reference=prelu)
case("nn.gating.prelu", real(2, 3, 4), real(4), reference=prelu, axis=-1)
case("nn.gating.prelu", real(5), real(1), reference=prelu)
case("nn.gating.prelu", real(2, 0), real(), reference=prelu)

SOFTMAXES = {"softmax": F.softmax, "log_softmax": F.log_softmax, "softmin": F.softmin}
for name, function in SOFTMAXES.items():
    key, reference = f"nn.probabilities.{name}", by_torch(function, axis="dim")
    axis_cases(key, reference)
    case(key, real(0, 3), reference=reference, axis=-1)
    case(key, real(3, 0), reference=reference, axis=-1)
    case(key, real(4, 7, low=-3e4, high=3e4), dtypes=FLOATS, reference=reference, axis=-1)
    case(
        key,
        real(3, 4, transform=lambda x: np.where(np.arange(4) < [[4], [1], [0]], -np.inf, x)),
        dtypes=FLOATS,
        reference=reference,
        axis=-1,
    )


def sparsemax(x, axis=-1):
    """By its definition: the projection of each row, threshold found by bisection."""
    low, high = x.max(axis, keepdims=True) - 1, x.max(axis, keepdims=True)
    for _ in range(100):
        middle = (low + high) / 2
        over = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.maximum(x - low, 0)


axis_cases("nn.probabilities.sparsemax", sparsemax)
case(
    "nn.probabilities.sparsemax", real(3, 5, low=-0.4, high=0.4), dtypes=FLOATS, reference=sparsemax
)


def is_distribution(result, x, **options):
    assert result.shape == x.shape
    total = np.asarray(result.astype("float32").numpy()).sum(-1)
    np.testing.assert_allclose(total, 1, rtol=2e-2)


def same_noise(result, x, temperature, seed):
    noise = np.random.Generator(np.random.PCG64(seed)).gumbel(size=x.shape)
    want = torch.softmax(torch.from_numpy((x + noise) / temperature), -1).numpy()
    np.testing.assert_allclose(result.astype("float32").numpy(), want, rtol=3e-2, atol=3e-2)


case("nn.probabilities.gumbel_softmax", real(3, 5), dtypes=FLOATS, check=is_distribution)
case(
    "nn.probabilities.gumbel_softmax",
    real(3, 5),
    dtypes=FLOATS,
    check=same_noise,
    temperature=0.5,
    seed=7,
)
