"""Rows for `ember_ml.ops.signal.convolution`."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.table import case, real

EXACT = ("float32", "float64")


def native(name):
    """Return torch's function as a function of NumPy arrays."""

    def reference(*args, **kwargs):
        tensors = [
            torch.from_numpy(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a
            for a in args
        ]
        return getattr(F, name)(*tensors, **kwargs).numpy()

    return reference


def unit(*shape, **options):
    return real(*shape, low=-1.0, high=1.0, **options)


def row(name, x, weight, bias=None, dtypes=EXACT, key=None, **options):
    inputs = [x, weight] if bias is None else [x, weight, bias]
    family = "transposed" if "transpose" in name else "convolution"
    case(
        f"signal.{family}.{key or name}", *inputs, reference=native(name), dtypes=dtypes, **options
    )


# the dtypes, lifted integers among them
row("conv1d", unit(2, 4, 9), unit(6, 4, 3), unit(6), dtypes=None)
row(
    "conv2d",
    unit(2, 4, 6, 5),
    unit(6, 2, 3, 2),
    unit(6),
    dtypes=None,
    stride=2,
    padding=1,
    groups=2,
)
row("conv3d", unit(2, 2, 4, 5, 3), unit(4, 2, 2, 3, 1), unit(4), dtypes=None)

for rank, space in ((1, (9,)), (2, (9, 6)), (3, (5, 6, 4))):
    name = f"conv{rank}d"
    for kernel in (1, 2, 3):
        for stride in (1, 2, 4):
            row(
                name,
                unit(2, 3, *space),
                unit(5, 3, *[kernel] * rank),
                unit(5),
                stride=stride,
                padding=kernel // 2,
            )
    for groups in (2, 4):
        row(
            name,
            unit(2, 4, *space),
            unit(8, 4 // groups, *[2] * rank),
            groups=groups,
            dilation=2,
            padding=1,
        )
    row(
        name, unit(2, 4, *space), unit(4, 1, *[3] * rank), unit(4), groups=4, padding=1
    )  # depthwise
    row(name, unit(1, 3, *space), unit(2, 3, *space))  # one window
    row(name, unit(0, 3, *space), unit(2, 3, *[2] * rank), unit(2))
    row(name, unit(2, 3, *space), unit(2, 3, *[1] * rank), key="conv")
    row(name, unit(2, 3, *space), unit(4, 3, *[3] * rank), padding="same", dilation=1)
    row(name, unit(2, 3, *space), unit(4, 3, *[2] * rank), padding="same", dilation=2)
    row(name, unit(2, 3, *space), unit(4, 3, *[2] * rank), padding="valid")

row("conv2d", unit(2, 3, 7, 8), unit(4, 3, 3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 3))
row("conv2d", unit(2, 3, 5, 6, transposed=True), unit(4, 3, 3, 2, transposed=True), unit(4))
row("conv1d", unit(1, 1, 6), unit(1, 1, 6), padding=5)
row("conv1d", unit(2, 3, 9, special=True), unit(4, 3, 3))


def padded(name, pads, **fixed):
    """Return torch's convolution of x padded by hand."""

    def reference(x, *weights, **kwargs):
        x = np.pad(x, [(0, 0), (0, 0), *pads])
        return native(name)(x, *weights, **fixed)

    return reference


for options, pads in (
    ({"padding": "causal"}, [(2, 0)]),
    ({"padding": "causal", "dilation": 2}, [(4, 0)]),
    ({"padding": [(1, 3)], "stride": 2}, [(1, 3)]),
    ({"padding": "same", "stride": 2}, [(0, 1)]),
    ({"padding": "same", "stride": 4}, [(0, 0)]),
):
    fixed = {key: value for key, value in options.items() if key != "padding"}
    case(
        "signal.convolution.conv1d",
        unit(2, 3, 8),
        unit(4, 3, 3),
        unit(4),
        reference=padded("conv1d", pads, **fixed),
        dtypes=EXACT,
        **options,
    )


def last(name):
    """Return torch's function for (batch, space..., channels)."""

    def reference(x, *weights, data_format, **kwargs):
        return np.moveaxis(native(name)(np.moveaxis(x, -1, 1), *weights, **kwargs), 1, -1)

    return reference


case(
    "signal.convolution.conv2d",
    unit(2, 5, 6, 4),
    unit(6, 2, 3, 2),
    unit(6),
    reference=last("conv2d"),
    dtypes=EXACT,
    groups=2,
    stride=2,
    data_format="channels_last",
)
case(
    "signal.convolution.conv_general",
    unit(2, 3, 8),
    unit(4, 3, 2),
    None,
    (2,),
    ((1, 1),),
    (3,),
    1,
    reference=lambda x, w, b, *_: native("conv1d")(x, w, b, 2, 1, 3),
    dtypes=EXACT,
)
