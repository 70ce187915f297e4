"""Rows for `ember_ml.ops.signal.pooling`."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.table import case, real

EXACT = ("float32", "float64")
POOL = "signal.pooling"


def native(name, **fixed):
    """Return torch's function as a function of a NumPy array."""

    def reference(x, *args, **kwargs):
        options = {**fixed, **kwargs}
        return getattr(F, name)(torch.from_numpy(np.ascontiguousarray(x)), *args, **options).numpy()

    return reference


for rank, space in ((1, (9,)), (2, (9, 6)), (3, (5, 6, 4))):
    for kind in ("max", "avg"):
        name = f"{kind}_pool{rank}d"
        case(f"{POOL}.{name}", real(2, 3, *space), 2, reference=native(name))
        for kernel in (1, 2, 3, 4):
            for stride in (1, 2, 5):
                case(
                    f"{POOL}.{name}",
                    real(2, 3, *space),
                    kernel,
                    stride,
                    kernel // 2,
                    reference=native(name),
                    dtypes=EXACT,
                )
            for options in (
                {"ceil_mode": True},
                {"ceil_mode": True, "padding": kernel // 2, "stride": 3},
            ):
                case(
                    f"{POOL}.{name}",
                    real(2, 3, *space),
                    kernel,
                    reference=native(name),
                    dtypes=EXACT,
                    **options,
                )
        case(f"{POOL}.{name}", real(0, 3, *space), 2, reference=native(name), dtypes=EXACT)
        case(f"{POOL}.{name}", real(1, 1, *[4] * rank), 4, reference=native(name), dtypes=EXACT)
    name = f"avg_pool{rank}d"
    for ceil_mode in (False, True):
        case(
            f"{POOL}.{name}",
            real(2, 3, *space),
            3,
            2,
            1,
            count_include_pad=False,
            ceil_mode=ceil_mode,
            reference=native(name),
        )
    name = f"max_pool{rank}d"
    case(f"{POOL}.{name}", real(2, 3, *space), 2, 1, 1, 2, reference=native(name), dtypes=EXACT)
    case(
        f"{POOL}.{name}", real(2, 3, *space, special=True), 2, reference=native(name), dtypes=EXACT
    )

case(
    f"{POOL}.max_pool2d",
    real(2, 3, 7, 8),
    (3, 2),
    (2, 1),
    (1, 0),
    reference=native("max_pool2d"),
    dtypes=EXACT,
)
case(
    f"{POOL}.avg_pool2d",
    real(2, 3, 7, 8),
    (3, 2),
    (2, 1),
    (1, 0),
    reference=native("avg_pool2d"),
    dtypes=EXACT,
)
case(
    f"{POOL}.max_pool1d",
    real(2, 3, 8, low=-9, high=-5),
    3,
    padding=1,
    reference=native("max_pool1d"),
    dtypes=EXACT,
)


def by_hand(kind, pads, axis=-1):
    """Return pooling of one axis with kernel 3, stride 2 and padding for each side."""

    def reference(x, *_, **__):
        x = np.moveaxis(x, axis, -1)
        fill = np.full((*x.shape[:-1], 1), -np.inf if kind == "max" else 0.0)
        x = np.concatenate([fill] * pads[0] + [x] + [fill] * pads[1], -1)
        views = np.lib.stride_tricks.sliding_window_view(x, 3, -1)[..., ::2, :]
        return np.moveaxis(views.max(-1) if kind == "max" else views.mean(-1), -1, axis)

    return reference


for kind in ("max", "avg"):
    key = f"{POOL}.{kind}_pool1d"
    case(key, real(2, 3, 8), 3, 2, padding="same", reference=by_hand(kind, (0, 1)), dtypes=EXACT)
    case(key, real(2, 3, 9), 3, 2, padding="same", reference=by_hand(kind, (1, 1)), dtypes=EXACT)
    case(key, real(2, 3, 9), 3, 2, padding="valid", reference=by_hand(kind, (0, 0)), dtypes=EXACT)
    case(key, real(2, 3, 9), 3, 2, padding=[(0, 1)], reference=by_hand(kind, (0, 1)), dtypes=EXACT)
    case(
        key,
        real(2, 9, 3),
        3,
        2,
        data_format="channels_last",
        reference=by_hand(kind, (0, 0), 1),
        dtypes=EXACT,
    )
GEOMETRY = ((2, 2), (2, 1), ((1, 1), (0, 1)))
case(
    f"{POOL}.max_pool_general",
    real(2, 3, 6, 5),
    *GEOMETRY,
    (1, 2),
    reference=lambda x, *_: native("max_pool2d", dilation=(1, 2))(
        np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 1)], constant_values=-np.inf), (2, 2), (2, 1)
    ),
    dtypes=EXACT,
)
case(
    f"{POOL}.avg_pool_general",
    real(2, 3, 6, 5),
    *GEOMETRY,
    reference=lambda x, *_: native("avg_pool2d")(
        np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 1)]), (2, 2), (2, 1)
    ),
    dtypes=EXACT,
)
