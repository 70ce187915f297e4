"""Errors of datasets and loaders."""

from __future__ import annotations

from ember_ml._core.errors import EmberError


class WorkerError(EmberError, RuntimeError):
    """Raised if a worker fails to read a batch; the message contains the worker's traceback."""


class DataFileError(EmberError, OSError):
    """Raised for a data file that is missing or would be overwritten."""
