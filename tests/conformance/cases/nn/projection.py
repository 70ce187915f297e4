"""Rows for `ember_ml.ops.nn.projection`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import COMPLEXES, FLOATS, case, integers, real


def linear(x, weight, bias=None):
    return x @ weight.T + (0 if bias is None else bias)


P = "nn.projection."
for shape in ((4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4), (2, 1, 3, 4)):
    case(P + "linear", real(*shape), real(5, 4), reference=linear, rtol=4.0)
    case(P + "linear", real(*shape), real(5, 4), real(5), reference=linear, rtol=4.0)
case(
    P + "linear",
    real(3, 4, transposed=True),
    real(5, 4, transposed=True),
    real(5),
    reference=linear,
    rtol=4.0,
)
case(P + "linear", real(3, 0), real(2, 0), real(2), reference=linear)
ones = {"low": 1, "high": 1}
case(
    P + "linear",
    real(1, 4096, **ones),
    real(2, 4096, **ones),
    dtypes=("float16", "float32"),
    reference=linear,
)


def softplus_linear(x, weight, bias=None):
    return np.logaddexp(linear(x, weight, bias), 0)


S = P + "softplus_linear"
for shape in ((4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4)):
    case(S, real(*shape), real(5, 4), reference=softplus_linear, rtol=4.0)
    case(S, real(*shape), real(5, 4), real(5), reference=softplus_linear, rtol=4.0)
transposed = real(3, 4, transposed=True), real(5, 4, transposed=True)
case(S, *transposed, real(5), reference=softplus_linear, rtol=4.0)
case(S, real(3, 0), real(2, 0), real(2), reference=softplus_linear)
many = real(160, 4), real(128, 4)  # for the kernels of every backend
case(S, *many, real(128), reference=softplus_linear, rtol=4.0, dtypes=("float32", "float64"))


def embedding(weight, indices):
    return weight[indices]


for dtype in ("int64", "int32", "uint8"):
    case(P + "embedding", real(6, 3), integers(2, 4, high=5, dtype=dtype), reference=embedding)
case(P + "embedding", real(6, 3), integers(high=5), reference=embedding)
case(P + "embedding", real(6, 3), integers(0, high=5), reference=embedding)
case(
    P + "embedding",
    real(6),
    integers(4, high=5),
    reference=embedding,
    dtypes=("float32", *COMPLEXES),
)
case(P + "embedding", real(6, 2, 2), integers(3, high=5), reference=embedding, dtypes=FLOATS)


def one_hot(x, num_classes, axis=-1, dtype=None):
    return np.moveaxis(x[..., None] == np.arange(num_classes), -1, axis)


for shape in ((), (4,), (2, 3), (0,)):
    case(P + "one_hot", real(*shape, low=-2, high=5), 4, reference=one_hot, result="float32")
for axis in (0, 1, 2, -3):
    case(
        P + "one_hot", real(2, 3, low=0, high=4), 5, reference=one_hot, result="float32", axis=axis
    )
for dtype in ("bool", "int64", "float16"):
    case(P + "one_hot", real(3, low=0, high=4), 5, reference=one_hot, result=dtype, dtype=dtype)
case(P + "one_hot", real(3, low=0, high=4), 0, reference=one_hot, result="float32")
