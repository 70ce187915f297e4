"""Losses that modules add to the training loss, such as the load balancing loss of a router.

A module reports a loss during `forward`; the trainer collects the losses around the call. They are
not stored on the module, where they could leak from one step or trace into another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from ember_ml._core.tensor import Tensor


class ReportedLosses(list[Tensor]):
    """Losses that modules reported, in order.

    Attributes:
        names: Name of each loss; empty for a loss without a name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []


class _Thread(threading.local):
    """The innermost open collection of a thread, and its open record of named losses."""

    def __init__(self) -> None:  # not a class attribute: torch's compiler guards on the dict
        self.losses: ReportedLosses | None = None
        self.terms: dict[str, Tensor] | None = None


_thread = _Thread()


def is_collecting() -> bool:
    """Return whether a `reported_losses` block is open, so that a report has an effect."""
    return _thread.losses is not None


def report_loss(loss: Tensor, name: str = "") -> None:
    """Add a loss to the innermost `reported_losses` block; outside of one, do nothing.

    Modules call it in `forward`, if `self.training`.

    Args:
        loss: A scalar.
        name: Name under which a trainer records the value in its history, such as
            "wiring_cost". Values of the same name are added. Default: it is not recorded.
    """
    if _thread.losses is not None:
        _thread.losses.append(loss)
        _thread.losses.names.append(name)


@contextlib.contextmanager
def reported_losses() -> Iterator[ReportedLosses]:
    """Collect the losses that modules report within the block.

    Use it inside the function that is differentiated, and not across `checkpoint`: a loss
    belongs to the trace that computed it.

    Example:
        >>> from ember_ml.nn.auxiliary_losses import report_loss, reported_losses
        >>> with reported_losses() as losses:
        ...     report_loss(tensor.array(2.0), "balance")
        >>> [float(loss) for loss in losses], losses.names
        ([2.0], ['balance'])
    """
    outer = _thread.losses
    losses = ReportedLosses()
    _thread.losses = losses
    try:
        yield losses
    finally:
        _thread.losses = outer


def add_losses(loss: Tensor, reported: ReportedLosses) -> Tensor:
    """Return the sum of a loss and the reported losses, and record those that have a name."""
    for other, name in zip(reported, reported.names, strict=True):
        loss = loss + other
        if name and _thread.terms is not None:
            known = _thread.terms.get(name)
            _thread.terms[name] = other if known is None else known + other
    return loss


def swap_terms(terms: dict[str, Tensor] | None) -> dict[str, Tensor] | None:
    """Set the dict in which `add_losses` records named losses, and return the previous one.

    Args:
        terms: The dict; None records nothing.
    """
    before, _thread.terms = _thread.terms, terms
    return before
