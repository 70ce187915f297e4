"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F


def ctc_loss(
    x: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    if x.ndim != 3 or targets.ndim != 2:
        raise ValueError("the shapes are not (time, batch, classes) and (batch, length)")
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    lengths = input_lengths.long(), target_lengths.long()
    return F.ctc_loss(wide, targets.long(), *lengths, blank, reduction, zero_infinity).to(x.dtype)
