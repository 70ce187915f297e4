"""Rows for `ember_ml.ops.nn.activations`."""

from __future__ import annotations

import numpy as np
from torch.nn import functional as F

from tests.conformance.table import FLOATS, case, real, unary_cases
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
