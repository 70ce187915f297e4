"""Denominators of mean losses, with which the means of several batches combine to one mean."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from ember_ml._core.tensor import Tensor


class _Thread(threading.local):
    """The innermost open collection of a thread."""

    def __init__(self) -> None:  # not a class attribute: torch's compiler guards on the dict
        self.weights: list[Tensor | float | None] | None = None


_thread = _Thread()


def report_weight(weight: Callable[[], Tensor | float] | None) -> None:
    """Add the denominator of a mean to the innermost `reported_weights` block.

    Args:
        weight: Function that returns the sum of the weights of all elements, called only inside
            a block; None for a sum, which is not divided.
    """
    if _thread.weights is not None:
        _thread.weights.append(None if weight is None else weight())


@contextlib.contextmanager
def reported_weights() -> Iterator[list[Tensor | float | None]]:
    """Collect the denominators of the losses that are computed within the block.

    Example:
        >>> from ember_ml.training import losses
        >>> from ember_ml.training.losses.weights import reported_weights
        >>> with reported_weights() as weights:
        ...     loss = losses.get("mse")(ops.zeros((4, 2)), ops.ones((4, 2)))
        >>> weights
        [8.0]
    """
    outer = _thread.weights
    weights: list[Tensor | float | None] = []
    _thread.weights = weights
    try:
        yield weights
    finally:
        _thread.weights = outer
