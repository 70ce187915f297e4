"""Cross-entropy of a language model that never holds the logits of all positions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import int64
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.autodiff.transforms.checkpointing import checkpoint
from ember_ml.configs.fields import NonNegative, Probability, Size
from ember_ml.nn.models.deferred_logits import DeferredLogits, deferring_logits
from ember_ml.registry import register
from ember_ml.training.losses import classes
from ember_ml.training.losses.base import Loss, Reduction, reduce, weighted, wide

CHUNK_LOGITS = 2**20
"""Number of logits of a chunk, by default."""
LEAST = 256
"""Smallest default number of positions of a chunk: each one costs a gradient of the weight."""


def chunked_cross_entropy(
    prediction: DeferredLogits | TensorLike,
    target: TensorLike,
    *,
    class_weight: TensorLike | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    chunk_size: int | None = None,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return the cross-entropy of deferred logits, computed in chunks of positions.

    Values and gradients are those of `cross_entropy` of all logits. Both passes hold the logits of
    one chunk at a time, and the backward pass computes them again.

    Args:
        prediction: Hidden states and head. Logits are accepted too, and are not divided.
        target: Class indices, of the shape of the hidden states without the features.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        ignore_index: Target value that is ignored.
        label_smoothing: Share of the target probability that is spread over all classes.
        chunk_size: Number of positions of a chunk. Default: as many as have 1 million logits, but
            at least 256.
        reduction: "mean", "sum" or "none" (the loss of each position).
        sample_weight: Factor on the loss of each position, or a boolean mask.
    """
    if not isinstance(prediction, DeferredLogits):
        return classes.cross_entropy(
            prediction,
            target,
            class_weight=class_weight,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            reduction=reduction,
            sample_weight=sample_weight,
        )
    like = prediction.hidden
    y = convert_to_tensor(target, backend=like.backend)
    classes.check_classes(like, y, -1)
    y = ops.astype(y, int64)
    factors = classes.factors_of(class_weight, wide(like[:0]))
    options = (factors, ignore_index, label_smoothing, "none", -1)

    def of_chunk(part: DeferredLogits, targets: Tensor) -> Tensor:
        return ops.cross_entropy(wide(part.logits()), targets, *options)

    losses = _losses(prediction, y, of_chunk, chunk_size)
    share = functools.partial(classes.share_of, losses, y, factors, ignore_index)
    loss = functools.partial(_reduced, losses, share)
    return weighted("chunked_cross_entropy", loss, reduction, sample_weight, share=share)


def _losses(
    prediction: DeferredLogits,
    y: Tensor,
    of_chunk: Callable[[DeferredLogits, Tensor], Tensor],
    chunk_size: int | None,
) -> Tensor:
    """Return the loss of each position, in the shape of the targets."""
    features = prediction.hidden.shape[-1]
    hidden = ops.reshape(prediction.hidden, (-1, features))
    targets = ops.reshape(y, (-1,))
    size = chunk_size or max(LEAST, CHUNK_LOGITS // prediction.weight.shape[0])
    ends = list(range(size, hidden.shape[0], size))
    compute = checkpoint(of_chunk)
    parts = zip(ops.split(hidden, ends), ops.split(targets, ends), strict=True)
    losses = [compute(prediction._replace(hidden=part), wanted) for part, wanted in parts]
    return ops.reshape(losses[0] if len(losses) == 1 else ops.concat(losses), y.shape)


def _reduced(losses: Tensor, share: Callable[[], Tensor], reduction: str) -> Tensor:
    """Return the losses reduced; a mean is that of the targets that are not ignored, or 0."""
    return losses if reduction == "none" else reduce(losses, share(), reduction)


@register("losses/chunked_cross_entropy")
class ChunkedCrossEntropy(Loss):
    """Cross-entropy of a language model that holds the logits of one chunk of positions at a time.

    A trainer with this loss lets the model return its hidden states and the weight of its head.
    For other models, whose outputs are logits, it is `CrossEntropy`.

    Args:
        ignore_index: Target value that is ignored.
        label_smoothing: Share of the target probability that is spread over all classes.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        chunk_size: Number of positions of a chunk. Default: as many as have 1 million logits, but
            at least 256.
        reduction: "mean", "sum" or "none" (the loss of each position).

    Shape: (..., classes) and (...) -> ().

    Example:
        >>> from ember_ml.nn.models.deferred_logits import deferring_logits
        >>> model = nn.models.LanguageModel("swiglu", 8, 16)
        >>> loss = ember_ml.training.losses.ChunkedCrossEntropy(chunk_size=2)
        >>> tokens = tensor.array([[1, 2, 3]])
        >>> with loss.calling_model():
        ...     chunked = loss(model(tokens), tokens)
        >>> whole = ember_ml.training.losses.CrossEntropy()(model(tokens), tokens)
        >>> abs(float(chunked) - float(whole)) < 1e-6
        True
    """

    function = staticmethod(chunked_cross_entropy)

    def __init__(
        self,
        ignore_index: int = -100,
        label_smoothing: Probability = 0.0,
        class_weight: tuple[NonNegative, ...] | None = None,
        chunk_size: Size | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        self.options |= {"class_weight": class_weight, "chunk_size": chunk_size}

    def calling_model(self) -> AbstractContextManager[None]:
        """Return a context in which language models return deferred logits."""
        return deferring_logits()
