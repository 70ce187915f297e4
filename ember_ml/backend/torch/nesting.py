"""Counts of the running gradients and transforms."""

from __future__ import annotations

import threading


class Nesting(threading.local):
    """Per-thread counts of nested gradients and transforms.

    Attributes:
        gradients: Nested autograd calls.
        transforms: Nested `torch.func` transforms.
        once: Whether the current graph is differentiated once and then dropped.
    """

    gradients = 0
    transforms = 0
    once = False


nesting = Nesting()


class Tracing:
    """Count of nested gradients in the function that `torch.compile` traces.

    It is not thread-local, so that the compiler can trace it; one function is traced at a time.
    """

    def __init__(self) -> None:
        self.gradients = 0


tracing = Tracing()
