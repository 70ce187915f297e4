"""CTC: the loss of label sequences that are not aligned with time."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Count
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss, LossLike, Reduction, weighted, wide


def ctc(
    prediction: TensorLike,
    target: TensorLike,
    input_lengths: TensorLike | None = None,
    target_lengths: TensorLike | None = None,
    *,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return the CTC loss: -log of the summed probability of all alignments of the labels.

    Args:
        prediction: Logits (batch, time, classes).
        target: Labels (batch, length), padded at the end.
        input_lengths: Number of valid time steps of each sequence. Default: all.
        target_lengths: Number of valid labels of each sequence. Default: those that are neither
            negative nor `blank`.
        blank: Index of the blank class.
        zero_infinity: Whether the loss of labels that do not fit into the time is 0 rather than
            infinite.
        reduction: "mean" (of each loss divided by its number of labels), "sum" or "none".
        sample_weight: Factor on the loss of each sequence, or a boolean mask.
    """
    x = wide(prediction)
    y = convert_to_tensor(target, backend=x.backend)
    if x.ndim != 3 or y.ndim != 2 or x.shape[0] != y.shape[0]:
        raise ShapeError(
            "ctc: expected predictions (batch, time, classes) and targets (batch, length), "
            f"got {x.shape} and {y.shape}"
        )
    count = ops.sum(ops.logical_and(y >= 0, y != blank), axis=1)
    labels = count if target_lengths is None else target_lengths
    times = ops.full_like(count, x.shape[1]) if input_lengths is None else input_lengths
    times, labels = (convert_to_tensor(each, backend=x.backend) for each in (times, labels))
    scores = ops.transpose(ops.log_softmax(x, -1), (1, 0, 2))
    options = ops.where(y >= 0, y, blank), times, labels, blank

    def loss(how: str) -> Tensor:
        return ops.ctc_loss(scores, *options, how, zero_infinity)

    if sample_weight is None or reduction != "mean":
        return weighted("ctc", loss, reduction, sample_weight)
    per_label = loss("none") / ops.astype(ops.maximum(labels, 1), x.dtype)
    return weighted("ctc", lambda how: per_label, reduction, sample_weight)


@register("losses/ctc")
class CTC(Loss):
    """CTC loss: -log of the summed probability of all alignments of the labels.

    Args:
        blank: Index of the blank class.
        zero_infinity: Whether the loss of labels that do not fit into the time is 0 rather than
            infinite.
        reduction: "mean" (of each loss divided by its number of labels), "sum" or "none".

    Shape: logits (batch, time, classes) and labels (batch, length) -> ().

    Reference: Graves et al., "Connectionist Temporal Classification", 2006.
    """

    function = staticmethod(ctc)

    def __init__(
        self,
        blank: Count = 0,
        zero_infinity: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"blank": blank, "zero_infinity": zero_infinity}

    def __call__(
        self,
        prediction: TensorLike,
        target: TensorLike,
        sample_weight: TensorLike | None = None,
        *,
        input_lengths: TensorLike | None = None,
        target_lengths: TensorLike | None = None,
    ) -> Tensor:
        """Return the loss; for the arguments see `ctc`."""
        lengths = {"input_lengths": input_lengths, "target_lengths": target_lengths}
        call: LossLike = self.function
        return call(prediction, target, sample_weight=sample_weight, **lengths, **self.options)
