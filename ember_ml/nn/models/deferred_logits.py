"""Logits that are not computed yet: the hidden states and the head's weight.

With a large vocabulary, the logits of all positions are the largest array of a training step. A
loss that computes them chunk by chunk needs what they are computed from.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.tensor import Tensor


class DeferredLogits(NamedTuple):
    """Hidden states and the linear map from them to logits.

    It is a pytree, so that transforms and modules of other frameworks can return it.

    Example:
        >>> from ember_ml.nn.models.deferred_logits import DeferredLogits
        >>> DeferredLogits(ops.ones((2, 3, 4)), ops.ones((8, 4))).logits().shape
        (2, 3, 8)
    """

    hidden: Tensor
    """Hidden states, (..., features)."""
    weight: Tensor
    """Weight of the head, (vocab_size, features)."""
    bias: Tensor | None = None
    """Bias of the head, (vocab_size,)."""
    softcap: float | None = None
    """Limit c of the logits s, which become c * tanh(s / c)."""

    def logits(self) -> Tensor:
        """Return the logits, (..., vocab_size)."""
        y = ops.linear(self.hidden, self.weight, self.bias)
        return y if self.softcap is None else self.softcap * ops.tanh(y / self.softcap)


class _Thread(threading.local):
    """Whether models of a thread return deferred logits."""

    def __init__(self) -> None:  # not a class attribute: torch's compiler guards on the dict
        self.defers = False


_thread = _Thread()


@contextlib.contextmanager
def deferring_logits() -> Iterator[None]:
    """Let language models return `DeferredLogits` instead of logits within the block.

    Example:
        >>> from ember_ml.nn.models.deferred_logits import deferring_logits
        >>> model = nn.models.LanguageModel("swiglu", 8, 16)
        >>> with deferring_logits():
        ...     deferred = model(tensor.array([[1, 2, 3]]))
        >>> deferred.hidden.shape, deferred.logits().shape
        ((1, 3, 16), (1, 3, 8))
    """
    before = _thread.defers
    _thread.defers = True
    try:
        yield
    finally:
        _thread.defers = before


def is_deferring() -> bool:
    """Return whether models of this thread return deferred logits."""
    return _thread.defers


def computed_logits(outputs: Any) -> Any:
    """Return the outputs of a model with logits in place of deferred ones.

    Args:
        outputs: Outputs, or a dict, list or tuple of outputs.
    """
    if isinstance(outputs, DeferredLogits):
        return outputs.logits()
    if isinstance(outputs, Mapping):
        return {name: computed_logits(part) for name, part in outputs.items()}
    if isinstance(outputs, (list, tuple)):
        return tree.sequence_like(type(outputs), [computed_logits(part) for part in outputs])
    return outputs
