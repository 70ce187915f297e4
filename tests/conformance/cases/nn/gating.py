"""Rows for `ember_ml.ops.nn.gating`."""

from __future__ import annotations

import numpy as np
from torch.nn import functional as F

from tests.conformance.table import case, real
from tests.conformance.torch_reference import by_torch


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


def silu_gate(x, gate):
    return x * gate / (1 + np.exp(-gate))


for shapes in (((2, 3, 4), (2, 3, 4)), ((3, 1), (2, 1, 4)), ((), ()), ((0, 4), (0, 4))):
    case("nn.gating.silu_gate", *(real(*shape) for shape in shapes), reference=silu_gate)


def gated_rms_norm(x, gate, weight=None, eps=1e-6, gate_first=False):
    opened = gate / (1 + np.exp(-gate))
    x = x * opened if gate_first else x
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (1 if weight is None else weight)
    return y if gate_first else y * opened


G = "nn.gating.gated_rms_norm"
case(G, real(2, 3, 4), real(2, 3, 4), real(4), reference=gated_rms_norm)
case(G, real(3, 5), real(3, 5), eps=0.1, reference=gated_rms_norm)
case(G, real(3, 5), real(3, 5), real(5), gate_first=True, reference=gated_rms_norm)
case(G, real(0, 5), real(0, 5), reference=gated_rms_norm)
