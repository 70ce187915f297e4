"""Content of the report of a search."""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.folder import TuningFolder
from ember_ml.training.tuning.module import SelfTuningModule
from ember_ml.training.tuning.trial import Trial


class TuningReport(NamedTuple):
    """Trials of a search, finished or not."""

    about: dict[str, Any]
    """Content of `tune.json`."""
    tuner: SelfTuningModule
    trials: list[Trial]
    ranked: list[Trial]
    """Completed trials, best first."""
    importance: dict[str, float]
    """Importance of each hyperparameter; empty if there are too few trials."""

    @property
    def metric(self) -> str:
        """Name of the score."""
        return self.tuner.metric

    @property
    def mode(self) -> str:
        """Whether the score is minimized ("min") or maximized ("max")."""
        return self.tuner.objectives[self.metric]

    def score(self, trial: Trial) -> float:
        """Return the score of a completed trial."""
        return trial.scores[self.metric]


def gather(folder: TuningFolder) -> TuningReport:
    """Read the folder of a search.

    Args:
        folder: The folder.
    """
    about = folder.about()
    tuner = folder.tuner(about)
    trials = tuner.trials
    sign = 1.0 if tuner.objectives[tuner.metric] == "max" else -1.0
    done = [trial for trial in trials if trial.state == "done"]
    ranked = sorted(done, key=lambda trial: -sign * trial.scores[tuner.metric])
    try:
        importance = tuner.explain()
    except TuningError:  # too few trials
        importance = {}
    return TuningReport(about, tuner, trials, ranked, importance)
