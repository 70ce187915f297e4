"""Rows for `ember_ml.ops.nn.adjoints`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.cases.nn.positions import rope
from tests.conformance.table import FLOATS, case, integers, mask, real
from tests.conformance.torch_reference import by_adjoint

A = "nn.adjoints."
TWO, THREE = ("same",) * 2, ("same",) * 3


def swiglu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    gate, value = x.chunk(2, axis)
    return F.silu(gate) * value


def gelu(x: torch.Tensor, approximate: bool = False) -> torch.Tensor:
    return F.gelu(x, approximate="tanh" if approximate else "none")


case(f"{A}silu_adjoint", real(5, 7), real(5, 7), reference=by_adjoint(F.silu))
for approximate in (False, True):
    pair = real(5, 7), real(5, 7)
    case(f"{A}gelu_adjoint", *pair, reference=by_adjoint(gelu), approximate=approximate)
for axis in (-1, 0):
    shapes = ((6, 4), (6, 8)) if axis else ((3, 8), (6, 8))
    pair = tuple(real(*shape) for shape in shapes)
    case(f"{A}swiglu_adjoint", *pair, reference=by_adjoint(swiglu), axis=axis)
    glu = by_adjoint(lambda x, axis=-1: F.glu(x, axis))
    case(f"{A}glu_adjoint", *pair, reference=glu, axis=axis)


case(
    f"{A}silu_gate_adjoint",
    *(real(5, 7), real(5, 7), real(5, 7)),
    reference=by_adjoint(lambda x, gate: x * F.silu(gate), 2),
    result=TWO,
)


def softplus_linear_adjoint(g: Any, out: Any, x: Any, weight: Any) -> Any:
    slopes = g * (1 - np.exp(-out))
    rows = slopes.reshape(-1, weight.shape[0])
    return slopes @ weight, rows.T @ x.reshape(-1, x.shape[-1]), rows.sum(0)


for shape in ((3,), (4,), (2, 4)):
    out = real(*shape[:-1], 5), real(*shape[:-1], 5, low=0.1, high=4.0)
    case(
        f"{A}softplus_linear_adjoint",
        *(*out, real(*shape), real(5, shape[-1])),
        reference=softplus_linear_adjoint,
        result=THREE,
        rtol=8.0,
    )


def softmax_adjoint(g: Any, out: Any, axis: int = -1) -> Any:
    return out * g - out * np.sum(g * out, axis, keepdims=True)


def log_softmax_adjoint(g: Any, out: Any, axis: int = -1) -> Any:
    return g - np.exp(out) * np.sum(g, axis, keepdims=True)


for axis in (-1, 0):
    out = real(4, 5, low=0.0, high=0.4)
    case(f"{A}softmax_adjoint", real(4, 5), out, reference=softmax_adjoint, axis=axis)
    out = real(4, 5, low=-4.0, high=-0.5)
    case(f"{A}log_softmax_adjoint", real(4, 5), out, reference=log_softmax_adjoint, axis=axis)


def cross_entropy(
    x: torch.Tensor, targets: torch.Tensor, ignore_index: int = -100, label_smoothing: float = 0.0
) -> torch.Tensor:
    return F.cross_entropy(
        x, targets, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction="none"
    )


for options in ({}, {"ignore_index": 2}, {"label_smoothing": 0.2, "ignore_index": 1}):
    case(
        f"{A}class_cross_entropy_adjoint",
        *(real(6), real(6, 5), integers(6, high=4)),
        reference=by_adjoint(cross_entropy),
        dtypes=FLOATS,
        **options,
    )


def layer_norm(x: Any, weight: Any, bias: Any, eps: float = 1e-5) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def layer_norm_adjoint(
    g: Any, x: Any, weight: Any = None, eps: float = 1e-5, axis: int = -1
) -> Any:
    weight = np.ones(x.shape[axis:]) if weight is None else weight
    return by_adjoint(layer_norm, 3)(g, x, weight, np.zeros_like(weight), eps=eps)


def rms_norm_adjoint(g: Any, x: Any, weight: Any = None, eps: float = 1e-6, axis: int = -1) -> Any:
    weight = np.ones(x.shape[axis:]) if weight is None else weight
    norm = by_adjoint(lambda x, w, eps: F.rms_norm(x, w.shape, w, eps), 2)
    return norm(g, x, weight, eps=eps)


for weight, options in (
    ((real(5),), {}),
    ((), {"eps": 0.5}),
    ((real(4, 5),), {"axis": -2}),
):
    x = real(3, 4, 5), real(3, 4, 5)
    common = {"rtol": 8.0, "dtypes": FLOATS, **options}
    case(
        f"{A}layer_norm_adjoint", *x, *weight, reference=layer_norm_adjoint, result=THREE, **common
    )
    case(f"{A}rms_norm_adjoint", *x, *weight, reference=rms_norm_adjoint, result=TWO, **common)


def attend(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, **options: Any
):
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=causal, **options)


for extra, options in (
    ((), {}),
    ((), {"causal": True, "scale": 0.5}),
    ((mask(5, 5),), {}),
):
    arrays = real(2, 4, 5, 3), real(2, 4, 5, 3), real(2, 2, 5, 3), real(2, 2, 5, 3)
    case(
        *(f"{A}attend_adjoint", *arrays, *extra),
        reference=by_adjoint(attend, 3),
        result=THREE,
        rtol=8.0,
        dtypes=("float32", "float64"),
        **options,
    )


def rotary_heads_adjoint(query, key, value, **rotation):
    """Rotate the other way: the second half of each head is negated before and after."""

    def turned_back(x: Any) -> Any:
        sign = np.repeat([1.0, -1.0], x.shape[-1] // 2)
        return sign * rope(sign * x, **rotation)

    heads = np.concatenate([turned_back(query), turned_back(key), value], 1)
    return np.concatenate(np.moveaxis(heads, 1, 0), -1)


for shapes, options in (
    (((2, 2, 5, 4),) * 3, {}),
    (((2, 4, 7, 6), (2, 2, 7, 6), (2, 2, 7, 6)), {"offset": 3, "base": 100.0}),
    (((1, 3, 1, 4), (1, 1, 1, 4), (1, 1, 1, 4)), {"offset": 2, "frequencies": (1.0, 0.3)}),
):
    case(
        f"{A}rotary_heads_adjoint",
        *(real(*shape) for shape in shapes),
        reference=rotary_heads_adjoint,
        **options,
    )
