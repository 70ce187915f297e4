"""Errors of the data part."""

from __future__ import annotations

from ember_ml._core.errors import EmberError


class WorkerError(EmberError, RuntimeError):
    """A batch that a background worker could not read; the message holds the worker's traceback."""


class DataFileError(EmberError, OSError):
    """A file of data that is missing, or would be overwritten."""
