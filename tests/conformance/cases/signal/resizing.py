"""Rows for `ember_ml.ops.signal.resizing`."""

from __future__ import annotations

import numpy as np

from tests.conformance.cases.signal.pooling import EXACT, native
from tests.conformance.table import case, real

RESIZE = "signal.resizing"
for length in (1, 2, 5, 7, 12):
    case(
        f"{RESIZE}.adaptive_avg_pool1d",
        real(2, 3, 7),
        length,
        reference=native("adaptive_avg_pool1d"),
        dtypes=EXACT,
    )
case(f"{RESIZE}.adaptive_avg_pool1d", real(2, 3, 9), 3, reference=native("adaptive_avg_pool1d"))
case(f"{RESIZE}.adaptive_avg_pool2d", real(2, 3, 7, 5), 3, reference=native("adaptive_avg_pool2d"))
case(
    f"{RESIZE}.adaptive_avg_pool2d",
    real(2, 3, 7, 5),
    (7, 2),
    reference=native("adaptive_avg_pool2d"),
    dtypes=EXACT,
)
case(
    f"{RESIZE}.adaptive_avg_pool2d",
    real(0, 3, 7, 5),
    2,
    reference=native("adaptive_avg_pool2d"),
    dtypes=EXACT,
)
case(
    f"{RESIZE}.adaptive_avg_pool_general",
    real(1, 2, 5, 4, 3),
    (2, 3, 1),
    reference=native("adaptive_avg_pool3d"),
    dtypes=EXACT,
)
for kind, fold in (("avg", np.mean), ("max", np.max)):
    key = f"{RESIZE}.global_{kind}_pool"
    case(key, real(2, 3, 4, 5), reference=lambda x, fold=fold: fold(x, (2, 3)))
    case(
        key,
        real(2, 3, 4),
        reference=lambda x, fold=fold, **_: fold(x, 2, keepdims=True),
        dtypes=EXACT,
        keepdims=True,
    )
    case(
        key,
        real(2, 4, 5, 3),
        reference=lambda x, fold=fold, **_: fold(x, (1, 2)),
        dtypes=EXACT,
        data_format="channels_last",
    )

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
for rank, space in ((1, (5,)), (2, (4, 5)), (3, (2, 3, 4))):
    key = f"{RESIZE}.interpolate"
    case(key, real(2, 3, *space), 7, reference=native("interpolate"))
    case(
        key,
        real(2, 3, *space),
        7,
        mode="linear",
        reference=lambda x, n, mode, to=LINEAR[rank]: native("interpolate", mode=to)(x, n),
    )
    for options in (
        {"size": 1},
        {"size": 3},
        {"scale_factor": 2.0},
        {"scale_factor": 1.7},
        {"scale_factor": 0.5},
    ):
        case(key, real(2, 3, *space), reference=native("interpolate"), dtypes=EXACT, **options)
        for align_corners in (False, True):
            case(
                key,
                real(2, 3, *space),
                mode="linear",
                align_corners=align_corners,
                reference=lambda x, mode, to=LINEAR[rank], **kwargs: native("interpolate", mode=to)(
                    x, **kwargs
                ),
                dtypes=EXACT,
                **options,
            )
    case(key, real(0, 3, *space), 2, reference=native("interpolate"), dtypes=EXACT)
case(
    f"{RESIZE}.interpolate",
    real(1, 1, 2),
    82,
    reference=lambda x, n: x[
        ..., np.arange(n) * 2 // n
    ],  # torch's own is off by one here in float32
)
case(
    f"{RESIZE}.interpolate",
    real(2, 4, 5, 3),
    (8, 5),
    data_format="channels_last",
    reference=lambda x, n, **_: np.repeat(x, 2, 1),
    dtypes=EXACT,
)
case(
    f"{RESIZE}.interpolate_general",
    real(2, 3, 4),
    (8,),
    None,
    "linear",
    False,
    reference=lambda x, *_: native("interpolate", mode="linear", align_corners=False)(x, 8),
    dtypes=EXACT,
)
