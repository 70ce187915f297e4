"""Rows for `ember_ml.ops.special`."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sp

from tests.conformance.fixed import by_dtype, fixed, signed
from tests.conformance.table import FLOATS, binary_cases, case, positive, real, unary_cases

lgamma = np.vectorize(math.lgamma, otypes=[float])


def guarded_lgamma(x):
    poles = np.isneginf(x) | ((x <= 0) & (x == np.floor(x)))
    return np.where(poles, np.inf, sp.gammaln(x))


UNARY = {
    "erf": (sp.erf, -4, 4),
    "erfc": (sp.erfc, -4, 4),
    "erfinv": (sp.erfinv, -0.9, 0.9),
    "ndtr": (sp.ndtr, -4, 4),
    "log_ndtr": (sp.log_ndtr, -9, 4),
    "ndtri": (sp.ndtri, 0.05, 0.95),
    "lgamma": (guarded_lgamma, 0.25, 9),
    "digamma": (sp.digamma, 1, 9),
    "i0": (lambda x: np.where(np.isinf(x), np.inf, sp.i0(x)), -4, 4),
    "i1": (lambda x: np.where(np.isinf(x), x, sp.i1(x)), -4, 4),
    "entr": (sp.entr, 0.25, 4),
    "sigmoid": (sp.expit, -9, 9),
    "log_sigmoid": (sp.log_expit, -9, 9),
    "softplus": (lambda x: np.logaddexp(x, 0), -9, 9),
    "logit": (sp.logit, 0.1, 0.9),
}
WHOLE = (*FLOATS, "int32", "uint8", "bool")
for name, (reference, low, high) in UNARY.items():
    dtypes = FLOATS if name in ("erfinv", "ndtri", "logit") else WHOLE
    dtypes = (*FLOATS, "int32") if name == "digamma" else dtypes
    unary_cases(
        f"special.{name}", reference, low=low, high=high, dtypes=dtypes, special=name != "digamma"
    )

TWO = FLOATS[2:]
case("special.erf", fixed(1e-3, -1e-6, 0.46875, 0.5, 5.0), check=signed(sp.erf), dtypes=TWO)
case("special.erfc", fixed(0.25, 3.0, 8.0, -8.0, 0.46875), check=signed(sp.erfc), dtypes=TWO)
far = by_dtype(2, lambda dtype: [20.0, 26.0] if dtype == np.float64 else [6.0, 8.5])
case("special.erfc", far, check=signed(sp.erfc), dtypes=TWO)
case(
    "special.erfinv",
    fixed(1.0, -1.0, 0.0, 1e-6, 0.999, -0.9999, 1.5),
    check=signed(sp.erfinv),
    dtypes=TWO,
)
near_one = by_dtype(2, lambda dtype: [1 - 8 * np.finfo(dtype).eps, np.finfo(dtype).tiny])
case("special.erfinv", near_one, check=signed(sp.erfinv), dtypes=TWO)
case("special.ndtr", fixed(-10.0, -3.0, 5.0), check=signed(sp.ndtr), dtypes=TWO)
case(
    "special.ndtri",
    fixed(0.0, 1.0, 1e-30, 1e-5, 0.5, 0.075, -1.0),
    check=signed(sp.ndtri),
    dtypes=TWO,
)
case(
    "special.log_ndtr", fixed(-100.0, -20.0, -1.0, 5.0, 9.0), check=signed(sp.log_ndtr), dtypes=TWO
)
case(
    "special.lgamma",
    fixed(1.0, 2.0, 1e-5, 0.5, 1.0005, 2.0005, 171.5, 1e6),
    check=signed(lgamma),
    dtypes=TWO,
)
case("special.lgamma", fixed(-0.5, -1.5, -3.25, -0.001), reference=lgamma, dtypes=TWO)
case("special.lgamma", fixed(0.0, -1.0, -2.0), reference=guarded_lgamma, dtypes=TWO)
case(
    "special.digamma",
    fixed(1e-4, 0.5, 1.0, 2.0, 30.0, 1e6, -0.5, -1.75, -3.25),
    check=signed(sp.digamma),
    dtypes=TWO,
)
case(
    "special.digamma",
    fixed(0.0, -0.0, -1.0, math.nan, math.inf),
    reference=lambda x: np.array([-np.inf, np.inf, np.nan, np.nan, np.inf]),
    dtypes=TWO,
)
for n in (0, 1, 2, 5):
    polygamma = lambda x, n: sp.polygamma(n, x)
    case("special.polygamma", positive(7), reference=polygamma, n=n, dtypes=TWO)
    case(
        "special.polygamma",
        positive(2, 3, low=1, high=9),
        reference=polygamma,
        n=n,
        dtypes=(*FLOATS, "int64"),
    )
    case("special.polygamma", fixed(-0.75, -2.25), reference=polygamma, n=n, dtypes=TWO, rtol=10)
case("special.polygamma", positive(0), reference=polygamma, n=1)
case("special.i0", fixed(3.75, -20.0, 50.0), check=signed(sp.i0), dtypes=TWO)
case("special.i1", fixed(3.75, -20.0, 50.0, 0.0, 19.0, -1e-3), check=signed(sp.i1), dtypes=TWO)
case("special.entr", fixed(0.0, -1.0, 1.0), reference=sp.entr, dtypes=FLOATS)
case("special.sigmoid", fixed(-80.0, -1000.0, 1000.0, -20.0), check=signed(sp.expit), dtypes=TWO)
case(
    "special.log_sigmoid", fixed(-1000.0, 1000.0, 20.0, -0.5), reference=sp.log_expit, dtypes=FLOATS
)
case(
    "special.softplus",
    fixed(-1000.0, 1000.0, 21.0, -30.0),
    reference=lambda x: np.logaddexp(x, 0),
    dtypes=FLOATS,
)
case(
    "special.softplus",
    real(2, 3),
    reference=lambda x, beta: np.logaddexp(beta * x, 0) / beta,
    beta=2.5,
    dtypes=WHOLE,
)
case("special.logit", fixed(0.0, 1.0, 1e-6, 0.5, 2.0), reference=sp.logit, dtypes=TWO)
case(
    "special.logit",
    fixed(0.0, 1.0, 0.25),
    reference=lambda x, eps: sp.logit(np.clip(x, eps, 1 - eps)),
    eps=0.125,
    dtypes=FLOATS,
)

binary_cases("special.betaln", sp.betaln, low=1, special=False, dtypes=WHOLE[:-1])
for name, reference in (("xlogy", sp.xlogy), ("xlog1py", sp.xlog1py)):
    key = f"special.{name}"
    binary_cases(key, reference, low=1, dtypes=WHOLE)
    ys = (0.0, -1.0, math.nan, math.inf, 2.0)
    case(
        key, fixed(0.0, 1.5, math.nan, column=True), fixed(*ys), reference=reference, dtypes=FLOATS
    )
    case(key, 2.0, positive(4), reference=reference, dtypes=FLOATS)
    case(key, positive(4), 3, reference=reference, dtypes=FLOATS)
