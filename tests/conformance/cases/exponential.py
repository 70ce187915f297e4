"""Rows for `ember_ml.ops.exponential`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import exact, fixed, signed
from tests.conformance.table import COMPLEXES, FLOATS, binary_cases, case, unary_cases

UNARY = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
for name, reference in UNARY.items():
    low = 0.5 if name in ("log", "log2", "log10", "sqrt", "rsqrt") else -0.9
    unary_cases(f"exponential.{name}", reference, low=low)
    case(
        f"exponential.{name}",
        fixed(math.nan, math.inf, -math.inf, -2.0),
        reference=reference,
        dtypes=FLOATS,
    )
for name in ("expm1", "log1p", "sqrt"):
    case(f"exponential.{name}", fixed(0.0, -0.0), check=signed(UNARY[name]), dtypes=FLOATS)
for name in ("expm1", "log1p"):
    tiny = (1e-7, -3e-6, 1e-20)
    case(f"exponential.{name}", fixed(*tiny), check=signed(UNARY[name]), dtypes=FLOATS[2:])
    case(
        f"exponential.{name}",
        fixed(1e-7 + 2e-7j, 1e-4 - 1e-3j),
        reference=UNARY[name],
        dtypes=COMPLEXES,
        rtol=1e-3,
    )
case("exponential.log", fixed(-1 + 0j, -1 - 0j, 2j), reference=np.log, dtypes=COMPLEXES)
case("exponential.exp2", fixed(10, -3, 0), check=exact(1024, 0.125, 1), dtypes=FLOATS)

for name, reference in (("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2)):
    key = f"exponential.{name}"
    binary_cases(key, reference)
    case(
        key,
        fixed(1000.0, -1000.0, 0.0),
        fixed(1000.0, -1000.0, -1000.0),
        reference=reference,
        dtypes=FLOATS,
    )
    case(key, fixed(math.inf, -math.inf, 2.0), 0.5, reference=reference, dtypes=FLOATS)
    case(key, 1, fixed(0.5, 3.0), reference=reference, dtypes=FLOATS)

unary_cases("exponential.cbrt", np.cbrt)
case(
    "exponential.cbrt", fixed(0.0, -0.0, -8.0, 27.0, 1e-5), check=signed(np.cbrt), dtypes=FLOATS[2:]
)
case("exponential.cbrt", fixed(27, 1000), check=exact(3, 10), dtypes=("float16", "bfloat16"))
