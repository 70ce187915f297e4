"""Rows for `ember_ml.ops.nn.classification`."""

from __future__ import annotations

from torch.nn import functional as F

from tests.conformance.cases.nn.losses import REDUCTIONS
from tests.conformance.table import FLOATS, case, integers, positive, real
from tests.conformance.torch_reference import by_torch

C = "nn.classification."


def classes_last(function):
    def reference(x, y, weight=None, axis=-1, **options):
        place = 0 if x.ndim == 1 else 1
        x = x.movedim(axis, place)
        y = y.movedim(axis, place) if y.is_floating_point() else y
        return function(x, y, weight, **options)

    return by_torch(reference)


cross_entropy, nll_loss = classes_last(F.cross_entropy), classes_last(F.nll_loss)
for reduction in REDUCTIONS:
    for name, reference in (("cross_entropy", cross_entropy), ("nll_loss", nll_loss)):
        for shape, targets, axis in (
            ((6, 4), (6,), -1),
            ((2, 5, 4), (2, 5), -1),
            ((2, 4, 5), (2, 5), 1),
            ((4, 6), (6,), 0),
            ((4,), (), -1),
        ):
            for weights in ((), (positive(4),)):
                case(
                    C + name,
                    real(*shape),
                    integers(*targets, high=3),
                    *weights,
                    reference=reference,
                    reduction=reduction,
                    axis=axis,
                )
        case(
            C + name,
            real(9, 4),
            integers(9, high=3, dtype="int32"),
            positive(4),
            dtypes=FLOATS,
            reference=reference,
            reduction=reduction,
            ignore_index=2,
        )
        case(
            C + name,
            real(3, 4),
            integers(3, low=-100, high=-100),
            dtypes=FLOATS,
            reference=reference,
            reduction=reduction,
        )
        case(
            C + name,
            real(0, 4),
            integers(0),
            dtypes=FLOATS,
            reference=reference,
            reduction=reduction,
        )
    for weights in ((), (positive(4),)):
        options = {"reduction": reduction, "label_smoothing": 0.2}
        case(
            C + "cross_entropy",
            real(9, 4),
            integers(9, high=3),
            *weights,
            dtypes=FLOATS,
            reference=cross_entropy,
            ignore_index=1,
            **options,
        )
        for shape, axis in (((6, 4), -1), ((2, 4, 3), 1), ((4,), 0)):
            case(
                C + "cross_entropy",
                real(*shape),
                real(*shape, low=0, high=1),
                *weights,
                dtypes=FLOATS,
                reference=cross_entropy,
                axis=axis,
                **options,
            )
case(
    C + "cross_entropy",
    real(5, 4, low=-3e4, high=3e4),
    integers(5, high=3),
    dtypes=FLOATS,
    reference=cross_entropy,
)
case(
    C + "cross_entropy",
    real(5, 4, dtype="float32"),
    real(5, 4, low=0, high=1, dtype="float16"),
    dtypes=("float32",),
    reference=cross_entropy,
)

for options in ({}, {"ignore_index": 2}, {"label_smoothing": 0.2, "ignore_index": 1}):
    losses = by_torch(lambda x, y, **given: F.cross_entropy(x, y, reduction="none", **given))
    case(
        f"{C}class_cross_entropy",
        *(real(6, 5), integers(6, high=4)),
        reference=losses,
        dtypes=FLOATS,
        **options,
    )
