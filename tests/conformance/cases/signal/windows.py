"""Rows for `ember_ml.ops.signal.windows`."""

from __future__ import annotations

import numpy as np
from scipy.signal import get_window

from tests.conformance.table import case


def scipy_window(name, *parameters):
    def reference(window_length, periodic=True, *given, **options):
        shape = (
            given or tuple(options[key] for key in ("beta", "std") if key in options) or parameters
        )
        spec = (name, *shape) if shape else name
        return get_window(spec, window_length, periodic) if window_length else np.ones(0)

    return reference


for length in (0, 1, 2, 3, 8, 17, 1024):
    for periodic in (True, False):
        for name, parameters in (
            ("hann", ()),
            ("hamming", ()),
            ("blackman", ()),
            ("bartlett", ()),
            ("kaiser", (12.0,)),
            ("gaussian", (1.0,)),
        ):
            case(
                f"signal.windows.{name}_window",
                length,
                periodic,
                reference=scipy_window(name, *parameters),
                dtypes=("float32",),
                result="float32",
            )
case(
    "signal.windows.kaiser_window",
    9,
    True,
    5.0,
    reference=scipy_window("kaiser"),
    dtypes=("float32",),
    result="float32",
)
case(
    "signal.windows.gaussian_window",
    9,
    std=2.5,
    reference=scipy_window("gaussian"),
    dtypes=("float32",),
    result="float32",
)
for dtype in ("float16", "float32"):
    case(
        "signal.windows.hann_window",
        16,
        dtype=dtype,
        reference=lambda window_length, dtype: get_window("hann", window_length),
        dtypes=("float32",),
        result=dtype,
    )
