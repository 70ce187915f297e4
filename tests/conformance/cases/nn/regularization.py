"""Rows for `ember_ml.ops.nn.regularization`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, case, real


def kept_share(result, x, rate=0.5, training=True, seed=None):
    values = result.astype("float32").numpy()
    assert values.shape == x.shape
    if not training or rate == 0:
        np.testing.assert_array_equal(values, x.astype(np.float32))
        return
    kept = values != 0
    scaled = x / max(1 - rate, 1e-9)
    np.testing.assert_allclose(values[kept], scaled[kept], rtol=2e-2)
    assert abs(kept.mean() - (1 - rate)) < 0.06


noise = real(40, 50, low=1, high=4)
for options in (
    {},
    {"rate": 0.0},
    {"rate": 1.0},
    {"rate": 0.1},
    {"rate": 0.2, "seed": 5},
    {"training": False},
):
    case("nn.regularization.dropout", noise, dtypes=FLOATS, check=kept_share, **options)
