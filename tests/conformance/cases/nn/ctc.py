"""Rows for `ember_ml.ops.nn.ctc`."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from tests.conformance.cases.nn.losses import REDUCTIONS
from tests.conformance.table import FLOATS, case, integers, real
from tests.conformance.torch_reference import by_torch


def log_probabilities(x):
    return torch.log_softmax(torch.from_numpy(x.astype(np.float64)), -1).numpy()


def ctc(x, targets, inputs, lengths, **options):
    return F.ctc_loss(x, targets, inputs, lengths, **options)


def ctc_inputs(time, batch, classes, labels, least=1):
    return (
        real(time, batch, classes, transform=log_probabilities),
        integers(batch, labels, low=1, high=classes - 1),
        integers(batch, low=time - 2, high=time),
        integers(batch, low=least, high=labels),
    )


for reduction in REDUCTIONS:
    for inputs in (
        ctc_inputs(12, 3, 5, 4),
        ctc_inputs(9, 4, 3, 3, least=0),
        ctc_inputs(3, 1, 2, 1),
    ):
        case(
            "nn.ctc.ctc_loss",
            *inputs,
            dtypes=FLOATS,
            reference=by_torch(ctc),
            reduction=reduction,
        )
    for zero_infinity in (False, True):
        case(
            "nn.ctc.ctc_loss",
            *ctc_inputs(4, 5, 2, 4, least=2),
            dtypes=("float32", "float64"),
            reference=by_torch(ctc),
            reduction=reduction,
            zero_infinity=zero_infinity,
        )
