"""Connectionist temporal classification: a loss over all alignments of labels with time steps."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite
from ember_ml._core.dtype import DEFAULT_INT
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.nn.losses import reduce

__all__ = ["ctc_loss"]

_IMPOSSIBLE = -1e30  # instead of -inf, whose differences have no gradient


@composite(rule=rules.REAL_FLOAT)
@in_float32
def ctc_loss(
    x: TensorLike,
    targets: IndexLike,
    input_lengths: IndexLike,
    target_lengths: IndexLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-likelihood of the labels, summed over all alignments with time.

    Args:
        x: Log-probabilities (time, batch, classes), as returned by `log_softmax`.
        targets: Labels (batch, length), padded at the end; none equals `blank`.
        input_lengths: Number of valid time steps of each sequence, (batch,).
        target_lengths: Number of valid labels of each sequence, (batch,).
        blank: Class of the blank.
        reduction: "mean" (of each loss divided by its number of labels), "sum" or "none".
        zero_infinity: Whether labels that do not fit the time return 0 instead of infinity.

    Reference: Graves et al., "Connectionist Temporal Classification", 2006.
    """
    if x.ndim != 3 or targets.ndim != 2 or targets.shape[0] != x.shape[1]:
        raise ShapeError(
            f"ctc_loss: x has shape {x.shape} and targets {targets.shape}; "
            "expected (time, batch, classes) and (batch, length)"
        )
    if not 0 <= blank < x.shape[2]:
        raise ArgumentError(f"ctc_loss: blank must be one of {x.shape[2]} classes; got {blank}")
    targets, input_lengths, target_lengths = [
        ops.astype(each, DEFAULT_INT) for each in (targets, input_lengths, target_lengths)
    ]
    labels = _with_blanks(targets, target_lengths, blank)  # (batch, states)
    emitted = ops.take_along_axis(x, ops.broadcast_to(labels, (x.shape[0], *labels.shape)), axis=2)
    total = _final(_forward(emitted, labels, input_lengths, blank), target_lengths)
    loss = ops.where(total > _IMPOSSIBLE / 2, -total, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        loss = loss / ops.astype(ops.maximum(target_lengths, 1), loss.dtype)
    return reduce("ctc_loss", loss, reduction)


def _with_blanks(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Return the labels with blanks between and around them: blank, label, ..., label, blank."""
    place = ops.cumulative_sum(ops.ones_like(targets), axis=1)
    labels = ops.where(place <= lengths[:, None], targets, blank)
    blanks = ops.full_like(labels, blank)
    pairs = ops.reshape(ops.stack([blanks, labels], axis=2), (labels.shape[0], -1))
    return ops.concat([pairs, ops.full_like(lengths[:, None], blank)], axis=1)


def _forward(emitted: Tensor, labels: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Return the log-probability of each state at the last time step: (batch, states)."""
    states = labels.shape[1]
    nothing = ops.full_like(emitted[0][:, :2], _IMPOSSIBLE)
    skips = ops.logical_and(labels[:, 2:] != blank, labels[:, 2:] != labels[:, :-2])
    alpha = ops.concat([emitted[0][:, :2], ops.full_like(emitted[0][:, 2:], _IMPOSSIBLE)], axis=1)
    for step in range(1, emitted.shape[0]):
        past = ops.concat([nothing, alpha], axis=1)  # past[:, state + 2] is alpha[:, state]
        reached = ops.logaddexp(alpha, past[:, 1 : states + 1])
        skipped = ops.where(skips, past[:, 2:states], _IMPOSSIBLE)
        skipped = ops.concat([nothing[:, : min(states, 2)], skipped], axis=1)
        reached = ops.maximum(ops.logaddexp(reached, skipped) + emitted[step], _IMPOSSIBLE)
        alpha = ops.where((lengths > step)[:, None], reached, alpha)
    return alpha


def _final(alpha: Tensor, lengths: Tensor) -> Tensor:
    """Return the log-probability of ending in the last label or the blank after it."""
    last = ops.take_along_axis(alpha, 2 * lengths[:, None], axis=1)[:, 0]
    before = ops.take_along_axis(alpha, ops.maximum(2 * lengths[:, None] - 1, 0), axis=1)[:, 0]
    return ops.where(lengths > 0, ops.logaddexp(last, before), last)
