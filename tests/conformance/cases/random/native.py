"""Rows for `ember_ml.ops.random.native`; tests/unit/test_random.py tries the distributions."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import case


def shaped(result, shape, *parameters):
    assert result.shape == shape
    assert result.dtype.name == "float32"
    assert np.isfinite(result.numpy()).all()
    assert np.unique(result.numpy()).size == result.size


def counts(result, shape, *parameters):
    assert result.shape == shape
    assert result.dtype.name == "int64"


def order(result, length):
    assert result.dtype.name == "int64"
    assert sorted(result.tolist()) == list(range(length))


PARAMETERS = {
    "normal": (1.0, 2.0),
    "uniform": (-1.0, 1.0),
    "truncated_normal": (0.0, 1.0, -2.0, 2.0),
    "exponential": (2.0,),
    "laplace": (0.0, 1.0),
    "gumbel": (0.0, 1.0),
    "cauchy": (0.0, 1.0),
    "gamma": (2.0, 1.0),
    "beta": (2.0, 3.0),
}
for shape in ((), (0,), (1,), (2, 3), (2, 0, 3)):
    for name, parameters in PARAMETERS.items():
        case(f"random.native.{name}", shape, *parameters, dtypes=("float32",), check=shaped)
    case("random.native.integers", shape, -3, 5, dtypes=("int64",), check=counts)
    case("random.native.poisson", shape, 2.5, dtypes=("int64",), check=counts)
for length in (0, 1, 20):
    case("random.native.permutation", length, dtypes=("int64",), check=order)
