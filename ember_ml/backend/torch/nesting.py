"""What gradients and transforms a thread is inside of."""

from __future__ import annotations

import threading


class Nesting(threading.local):
    """Counts for this thread: gradients by autograd, transforms by torch.func."""

    gradients = 0
    transforms = 0
    once = False
    """Whether the graph under way is differentiated once and then dropped."""


nesting = Nesting()


class Tracing:
    """How many gradients the function that a compiler traces is inside of."""

    def __init__(self) -> None:
        self.gradients = 0


tracing = Tracing()
"""No thread's own, for the compiler to follow; one function is traced at a time."""
