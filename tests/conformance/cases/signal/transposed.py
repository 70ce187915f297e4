"""Rows for `ember_ml.ops.signal.transposed`."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.conformance.cases.signal.convolution import EXACT, last, native, row, unit
from tests.conformance.table import case

row("conv_transpose1d", unit(2, 4, 7), unit(4, 6, 3), unit(6), dtypes=None, stride=2)
row(
    "conv_transpose2d",
    unit(2, 4, 4, 5),
    unit(4, 3, 3, 2),
    unit(6),
    dtypes=None,
    stride=2,
    padding=1,
    groups=2,
)
row("conv_transpose3d", unit(1, 2, 3, 2, 3), unit(2, 2, 2, 3, 1), unit(2), dtypes=None)

for rank, space in ((1, (9,)), (2, (9, 6)), (3, (5, 6, 4))):
    name = f"conv_transpose{rank}d"
    for kernel in (1, 2, 3):
        for stride in (1, 2, 4):
            row(
                name,
                unit(2, 3, *space),
                unit(3, 5, *[kernel] * rank),
                unit(5),
                stride=stride,
                padding=kernel // 2,
            )
    for groups in (2, 4):
        row(name, unit(2, 4, *space), unit(4, 3, *[2] * rank), groups=groups, dilation=2, padding=1)
    row(
        name,
        unit(2, 4, *space),
        unit(4, 1, *[3] * rank),
        unit(4),
        groups=4,
        stride=2,
        output_padding=1,
    )
    row(
        name,
        unit(1, 3, *space),
        unit(3, 2, *[3] * rank),
        unit(2),
        stride=3,
        padding=1,
        output_padding=2,
    )
    row(name, unit(0, 3, *space), unit(3, 2, *[2] * rank), unit(2))
    row(name, unit(2, 3, *space), unit(3, 2, *[1] * rank), key="conv_transpose")

row(
    "conv_transpose2d",
    unit(2, 3, 4, 3),
    unit(3, 4, 3, 2),
    stride=(2, 1),
    padding=(1, 0),
    dilation=(1, 3),
)


def cut(name, cuts, **fixed):
    """Return torch's transposed convolution, cropped or zero-padded by hand."""

    def reference(x, weight, bias, **kwargs):
        whole = torch.from_numpy(native(name)(x, weight, **fixed))
        return F.pad(whole, [-c for pair in reversed(cuts) for c in pair]).numpy() + bias[:, None]

    return reference


for options, cuts in (
    ({"padding": [(0, 2)]}, [(0, 2)]),
    ({"padding": [(2, 1)], "stride": 2}, [(2, 1)]),
    ({"padding": "same", "stride": 2}, [(0, 1)]),
    ({"padding": "same", "stride": 5}, [(0, -2)]),
    ({"output_padding": 4, "stride": 2}, [(0, -4)]),
):
    fixed = {"stride": options.get("stride", 1)}
    case(
        "signal.transposed.conv_transpose1d",
        unit(2, 3, 5),
        unit(3, 4, 3),
        unit(4),
        reference=cut("conv_transpose1d", cuts, **fixed),
        dtypes=EXACT,
        **options,
    )


case(
    "signal.transposed.conv_transpose2d",
    unit(2, 5, 6, 4),
    unit(4, 3, 3, 2),
    unit(6),
    reference=last("conv_transpose2d"),
    dtypes=EXACT,
    groups=2,
    stride=2,
    data_format="channels_last",
)
case(
    "signal.transposed.conv_transpose_general",
    unit(2, 3, 8),
    unit(3, 4, 2),
    None,
    (2,),
    ((1, 1),),
    (3,),
    1,
    reference=lambda x, w, b, *_: native("conv_transpose1d")(x, w, b, 2, 1, 0, 1, 3),
    dtypes=EXACT,
)
