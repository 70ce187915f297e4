"""Transposed convolutions."""

from __future__ import annotations

from torch.nn import functional as F

from ember_ml.backend.torch.ops.signal.convolution import flat
from ember_ml.backend.windows import check_steps

_CONV = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def conv_transpose_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    native = _CONV[len(stride)]
    more = [low - high for low, high in padding]
    if all(0 <= n < max(s, d) for n, s, d in zip(more, stride, dilation, strict=True)):
        lows = [low for low, _ in padding]
        return native(x, weight, bias, stride, lows, more, groups, dilation)
    whole = native(x, weight, None, stride, 0, 0, groups, dilation)
    y = F.pad(whole, [-cut for cut in flat(padding)])
    return y if bias is None else y + bias.reshape(-1, *[1] * len(stride))
