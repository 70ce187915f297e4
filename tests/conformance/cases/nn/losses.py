"""Rows for `ember_ml.ops.nn.losses`."""

from __future__ import annotations

import numpy as np
from torch.nn import functional as F

from tests.conformance.table import FLOATS, case, positive, real
from tests.conformance.torch_reference import by_torch

L = "nn.losses."
probability = {"low": 0.05, "high": 0.95}
REDUCTIONS = ("mean", "sum", "none")


def reduced(loss, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](loss)


def hinge(x, y, margin=1.0, reduction="mean"):
    return reduced(np.maximum(margin - x * y, 0), reduction)


PAIRS = {
    "mse_loss": (F.mse_loss, [{}]),
    "l1_loss": (F.l1_loss, [{}]),
    "huber_loss": (F.huber_loss, [{}, {"delta": 0.5}, {"delta": 3.0}]),
    "smooth_l1_loss": (F.smooth_l1_loss, [{}, {"beta": 0.5}, {"beta": 0.0}]),
}
for name, (function, settings) in PAIRS.items():
    for options in settings:
        for reduction in REDUCTIONS:
            reference = by_torch(function)
            case(
                L + name,
                real(3, 4),
                real(3, 4),
                reference=reference,
                reduction=reduction,
                **options,
            )
    for shape in ((), (1,), (2, 0)):
        case(L + name, real(*shape), real(*shape), dtypes=FLOATS, reference=by_torch(function))
    case(
        L + name,
        real(4, 3, transposed=True),
        real(4, 3),
        dtypes=FLOATS,
        reference=by_torch(function),
    )

for reduction in REDUCTIONS:
    case(L + "hinge_loss", real(3, 4), real(3, 4), reference=hinge, reduction=reduction)
    case(L + "hinge_loss", real(3), real(3), reference=hinge, reduction=reduction, margin=0.25)
    inputs = (real(3, 4, **probability), real(3, 4, **probability))
    bce = by_torch(F.binary_cross_entropy)
    case(L + "binary_cross_entropy", *inputs, dtypes=FLOATS, reference=bce, reduction=reduction)
    case(
        L + "binary_cross_entropy",
        *inputs,
        positive(3, 4),
        dtypes=FLOATS,
        reference=bce,
        reduction=reduction,
    )


def certain(x):
    return (x > 0.5).astype(x.dtype)


case(
    L + "binary_cross_entropy",
    real(8, **probability, transform=certain),
    real(8, **probability),
    dtypes=FLOATS,
    reference=by_torch(F.binary_cross_entropy),
)


def bce_with_logits(x, y, weight=None, pos_weight=None, reduction="mean"):
    options = {"pos_weight": pos_weight, "reduction": reduction}
    return F.binary_cross_entropy_with_logits(x, y, weight, **options)


W = L + "binary_cross_entropy_with_logits"
for reduction in REDUCTIONS:
    for extra in ((), (positive(4),), (None, positive(4)), (positive(3, 4), positive(1))):
        case(
            W,
            real(3, 4, low=-9, high=9),
            real(3, 4, low=0, high=1),
            *extra,
            reference=by_torch(bce_with_logits),
            reduction=reduction,
        )
case(
    W,
    real(8, low=-3e4, high=3e4),
    real(8, low=0, high=1),
    dtypes=FLOATS,
    reference=by_torch(bce_with_logits),
)
case(W, real(2, 0), real(2, 0), dtypes=FLOATS, reference=by_torch(bce_with_logits))

for reduction in (*REDUCTIONS, "batchmean"):
    for log_target in (False, True):
        case(
            L + "kl_div",
            real(3, 4),
            real(3, 4, low=0.0, high=1.0),
            reference=by_torch(F.kl_div),
            log_target=log_target,
            reduction=reduction,
        )
case(
    L + "kl_div",
    real(5),
    real(5, transform=lambda x: 0 * x),
    dtypes=FLOATS,
    reference=by_torch(F.kl_div),
)

cosine = by_torch(F.cosine_similarity, axis="dim")
for axis in (0, 1, -1):
    case(L + "cosine_similarity", real(3, 4), real(3, 4), reference=cosine, axis=axis)
case(L + "cosine_similarity", real(2, 1, 4), real(3, 4), dtypes=FLOATS, reference=cosine, axis=-1)
case(
    L + "cosine_similarity",
    real(3, 4),
    real(3, 4, transform=lambda x: 0 * x),
    reference=cosine,
    axis=-1,
)
