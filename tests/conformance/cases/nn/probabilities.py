"""Rows for `ember_ml.ops.nn.probabilities`."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.table import FLOATS, axis_cases, case, real
from tests.conformance.torch_reference import by_torch

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
    """Project each row onto the simplex, with the threshold found by bisection."""
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
