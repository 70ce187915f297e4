"""Rows for `ember_ml.ops.padding`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, case, real

case("padding.pad", real(2, 3), 2, reference=np.pad)
case("padding.pad", real(2, 3), (1, 0), reference=np.pad)
case("padding.pad", real(2, 3), [(1, 2), (0, 3)], reference=np.pad)
case("padding.pad", real(0, 2), 1, reference=np.pad)
case("padding.pad", real(2), 0, reference=np.pad)
case("padding.pad", real(), 3, reference=np.pad)
case("padding.pad", real(3), 1, reference=np.pad, constant_values=3, dtypes=(*INTEGERS, *FLOATS))
case("padding.pad", real(3), 1, reference=np.pad, constant_values=-np.inf, dtypes=FLOATS)
case("padding.pad", real(3), 1, reference=np.pad, constant_values=2**60 + 1, dtypes=("int64",))
case("padding.pad", real(3), 1, reference=np.pad, constant_values=True, dtypes=("bool",))
case("padding.pad", real(3), 1, reference=np.pad, constant_values=1 - 2j, dtypes=COMPLEXES)
for mode in ("edge", "reflect", "symmetric", "wrap"):
    case("padding.pad", real(4), (2, 3), reference=np.pad, mode=mode)
    case("padding.pad", real(4), (0, 1), reference=np.pad, mode=mode)
    case("padding.pad", real(3), (11, 8), reference=np.pad, mode=mode)
    case("padding.pad", real(1), 3, reference=np.pad, mode=mode)
    case("padding.pad", real(2, 3, 2), [(1, 0), (2, 5), (0, 1)], reference=np.pad, mode=mode)
    case("padding.pad", real(0, 3), [(0, 0), (1, 1)], reference=np.pad, mode=mode)
case("padding.pad_constant", real(2, 3), [(1, 0), (0, 2)], reference=np.pad)
