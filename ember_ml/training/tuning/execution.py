"""Execution of a trial: what a worker process calls."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from ember_ml.training.trainer.nonfinite import NonFiniteError
from ember_ml.training.tuning.errors import TrialPruned
from ember_ml.training.tuning.memory import is_out_of_memory
from ember_ml.training.tuning.trial import Report, Trial

Objective = Callable[[Trial], "float | Mapping[str, float]"]
"""Function of a trial that returns its score, or the value of each objective."""


def run_trial(
    objective: Objective, trial: Mapping[str, Any], report: Report | None = None
) -> dict[str, Any]:
    """Run an objective on a trial, and return the outcome as plain data.

    An error in the objective does not propagate: the trial has failed. Ctrl-C and the end of the
    process do.

    Args:
        objective: Function of the trial. It may call `trial.report(step, value)`, and may end when
            that returns True.
        trial: The trial as plain data, from `Trial.to_dict`.
        report: Called with each report; returns whether the trial is to stop.

    Returns:
        {"kind": "told", "values": score or {objective: value}}, {"kind": "pruned"}, or {"kind":
        "failed", "reason": text}.
    """
    own = Trial.from_dict(trial)
    own.listener = report
    try:
        values = objective(own)
        if own.stopped:
            return {"kind": "pruned"}
        values = _plain(values)
    except TrialPruned:
        return {"kind": "pruned"}
    except NonFiniteError as error:
        return {"kind": "failed", "reason": f"diverged: {error}"}
    except Exception as error:
        return {"kind": "failed", "reason": _reason(error)}
    wrong = [name for name, value in _items(values) if not math.isfinite(value)]
    if wrong:
        return {"kind": "failed", "reason": f"diverged: {' and '.join(wrong)} is not finite"}
    return {"kind": "told", "values": values}


def _plain(values: Any) -> float | dict[str, float]:
    """Return scores as Python numbers."""
    if isinstance(values, Mapping):
        return {str(name): float(value) for name, value in values.items()}
    return float(values)


def _items(values: float | dict[str, float]) -> list[tuple[str, float]]:
    return list(values.items()) if isinstance(values, dict) else [("the score", values)]


def _reason(error: Exception) -> str:
    """Return one line about an error, with the place where it was raised."""
    if is_out_of_memory(error):
        return f"out of memory: {error!s:.200}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error!s:.500}{place}"
