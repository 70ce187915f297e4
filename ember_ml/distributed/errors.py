"""Errors of distributed training."""

from __future__ import annotations

from ember_ml._core.errors import EmberError


class DistributedError(EmberError, RuntimeError):
    """Processes that cannot train together, or a process that failed or hangs."""
