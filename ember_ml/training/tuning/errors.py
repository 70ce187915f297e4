"""Errors and warnings of the tuning package."""

from __future__ import annotations

from ember_ml._core.errors import EmberError


class TuningError(EmberError, ValueError):
    """Raised for an invalid search space, or a wrong use of a tuner."""


class HistoryError(TuningError):
    """Raised for a history file that cannot be read, or that belongs to another search space."""


class HistoryWarning(UserWarning):
    """Issued for a line of a history file that is skipped because it is damaged or incomplete."""


class TrialPruned(Exception):  # noqa: N818
    """Raised by an objective function to end its trial after `trial.report` returned True."""
