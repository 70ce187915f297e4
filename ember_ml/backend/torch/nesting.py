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
