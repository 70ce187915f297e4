"""Rows for `ember_ml.ops.signal.adjoints`."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from tests.conformance.table import case, mask, real
from tests.conformance.torch_reference import by_adjoint

A = "signal.adjoints."
EXACT = ("float32", "float64")


def causal_conv(x: Any, weight: Any, bias: Any) -> torch.Tensor:
    padded = F.pad(x, (weight.shape[1] - 1, 0))
    return F.conv1d(padded, weight[:, None], bias, groups=len(weight))


def causal_conv_adjoint(g: Any, x: Any, weight: Any) -> Any:
    return by_adjoint(causal_conv, 3)(g, x, weight, weight[:, 0] * 0)


def causal_conv_silu_adjoint(g: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    bias = weight[:, 0] * 0 if bias is None else bias
    return by_adjoint(lambda *operands: F.silu(causal_conv(*operands)), 3)(g, x, weight, bias)


def long_conv(x: Any, kernel: Any) -> torch.Tensor:
    padded = F.pad(x, (kernel.shape[1] - 1, 0))
    return F.conv1d(padded, kernel.flip(1)[:, None], groups=len(kernel))


def gated_long_conv(x: Any, weight: Any, bias: Any, kernel: Any, mask: Any = None) -> torch.Tensor:
    filtered = causal_conv(x.repeat(1, len(weight) // x.shape[1], 1), weight, bias)
    query, key, value = filtered.chunk(3, 1)
    joined = key * value if mask is None else (key * value).masked_fill(~mask[:, None], 0)
    return query * long_conv(joined, kernel)


for length, taps in ((7, 3), (2, 4), (1, 1)):
    case(
        f"{A}causal_conv1d_adjoint",
        *(real(2, 3, length), real(2, 3, length), real(3, taps)),
        reference=causal_conv_adjoint,
        result=("same",) * 3,
        rtol=8.0,
        dtypes=EXACT,
    )
for bias in ((real(3),), ()):
    case(
        f"{A}causal_conv1d_silu_adjoint",
        *(real(2, 3, 7), real(2, 3, 7), real(3, 4), *bias),
        reference=causal_conv_silu_adjoint,
        result=("same",) * 3,
        rtol=8.0,
        dtypes=EXACT,
    )
for batch, length, taps in ((4, 6, 6), (4, 6, 9), (4, 5, 2), (2, 20, 20)):
    case(
        f"{A}long_conv_adjoint",
        *(real(batch, 3, length), real(batch, 3, length), real(3, taps)),
        reference=by_adjoint(long_conv, 2),
        result=("same",) * 2,
        rtol=20.0,
        dtypes=EXACT,
    )
for batch, length, extra in ((4, 6, ()), (3, 5, (mask(3, 5),)), (2, 20, ())):
    case(
        f"{A}gated_long_conv_adjoint",
        *(real(batch, 4, length), real(batch, 6, length), real(12, 3), real(12), real(4, length)),
        *extra,
        reference=by_adjoint(gated_long_conv, 4),
        result=("same",) * 4,
        rtol=40.0,
        dtypes=EXACT,
    )
