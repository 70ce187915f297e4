"""Counts of the running transforms of MLX."""

from __future__ import annotations

import threading


class Nesting(threading.local):
    """Per-thread counts of nested transforms of MLX.

    Attributes:
        gradients: Nested `mx.vjp` and `mx.value_and_grad` calls.
        batches: Nested `mx.vmap` calls.
    """

    gradients = 0
    batches = 0


nesting = Nesting()
