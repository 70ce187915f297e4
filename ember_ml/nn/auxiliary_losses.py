"""Losses that modules add to the training loss, such as the load balancing loss of a router.

A module reports a loss during `forward`; the trainer collects the losses around the call. They are
not stored on the module, where they could leak from one step or trace into another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from ember_ml._core.tensor import Tensor


class _Thread(threading.local):
    """The innermost open collection of a thread."""

    def __init__(self) -> None:  # not a class attribute: torch's compiler guards on the dict
        self.losses: list[Tensor] | None = None


_thread = _Thread()


def report_loss(loss: Tensor) -> None:
    """Add a loss to the innermost `reported_losses` block; outside of one, do nothing.

    Modules call it in `forward`, if `self.training`.

    Args:
        loss: A scalar.
    """
    if _thread.losses is not None:
        _thread.losses.append(loss)


@contextlib.contextmanager
def reported_losses() -> Iterator[list[Tensor]]:
    """Collect the losses that modules report within the block.

    Use it inside the function that is differentiated, and not across `checkpoint`: a loss
    belongs to the trace that computed it.

    Example:
        >>> from ember_ml.nn.auxiliary_losses import report_loss, reported_losses
        >>> with reported_losses() as losses:
        ...     report_loss(tensor.array(2.0))
        >>> [float(loss) for loss in losses]
        [2.0]
    """
    outer = _thread.losses
    losses: list[Tensor] = []
    _thread.losses = losses
    try:
        yield losses
    finally:
        _thread.losses = outer


def add_losses(loss: Tensor, reported: list[Tensor]) -> Tensor:
    """Return the sum of a loss and the reported losses."""
    for other in reported:
        loss = loss + other
    return loss
