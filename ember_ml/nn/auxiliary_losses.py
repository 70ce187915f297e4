"""Losses that parts of a model have of their own, such as that of a router's balance.

A part reports them while it runs; whoever trains the model collects them around the call. They are
kept nowhere else, so that none is left over from another step, or from another trace.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from ember_ml._core.tensor import Tensor


class _Thread(threading.local):
    """The innermost open collection of a thread."""

    losses: list[Tensor] | None = None


_thread = _Thread()


def report_loss(loss: Tensor) -> None:
    """Have a scalar added to the loss of the training that runs the calling part, if one does.

    Modules call it in `forward`, while `self.training`.
    """
    if _thread.losses is not None:
        _thread.losses.append(loss)


@contextlib.contextmanager
def reported_losses() -> Iterator[list[Tensor]]:
    """Collect what modules report within the block.

    Collect within the function that is differentiated, and not across `checkpoint`: a loss belongs
    to the trace it was computed in.

    Example:
        >>> from ember_ml.nn.auxiliary_losses import report_loss, reported_losses
        >>> with reported_losses() as losses:
        ...     report_loss(tensor.array(2.0))
        >>> [float(loss) for loss in losses]
        [2.0]
    """
    before = _thread.losses
    found: list[Tensor] = []
    _thread.losses = found
    try:
        yield found
    finally:
        _thread.losses = before


def add_losses(loss: Tensor, reported: list[Tensor]) -> Tensor:
    """The loss and all that was reported, added up."""
    for more in reported:
        loss = loss + more
    return loss
