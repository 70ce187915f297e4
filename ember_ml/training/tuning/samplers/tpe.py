"""Tree-structured Parzen estimator of Optuna."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml._core.requirements import import_optional
from ember_ml.configs.fields import Count
from ember_ml.registry import register
from ember_ml.training.tuning.ranges import Choice, Float, Integer, Range
from ember_ml.training.tuning.samplers.base import Sampler, Search, nearest
from ember_ml.training.tuning.space import Params
from ember_ml.training.tuning.trial import Trial


@register("samplers/tpe")
class TPESampler(Sampler):
    """Tree-structured Parzen estimator of Optuna, on the trials of the task alone.

    It supports conditional spaces, several objectives and pruned trials, and takes running trials
    into account. It needs Optuna (the extra `tune`).

    Args:
        startup_trials: Number of random trials at the beginning.
    """

    name = "tpe"

    def __init__(self, startup_trials: Count = 10) -> None:
        self.startup_trials = startup_trials

    def propose(self, search: Search) -> Params:
        """Return the values that Optuna proposes; of a set of candidates, the nearest ones."""
        optuna = import_optional("optuna", "samplers/tpe")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            directions=[f"{mode}imize" for mode in search.objectives.values()],
            sampler=optuna.samplers.TPESampler(
                n_startup_trials=self.startup_trials, seed=search.seed % 2**32
            ),
        )
        for trial in search.trials:
            if trial.state != "failed" and (trial.state != "pruned" or trial.scores):
                study.add_trial(_frozen(optuna, search, trial))
        proposed = _suggest(study.ask(), search)
        return proposed if search.candidates is None else nearest(search, proposed)


def _suggest(trial: Any, search: Search) -> Params:
    """Return values of the active keys, each conditional on those it depends on."""
    params: Params = {}
    for key in search.space.order:
        entry = search.space[key]
        if not search.space.is_active(key, params):
            continue
        if isinstance(entry, Float):
            params[key] = trial.suggest_float(key, entry.low, entry.high, log=entry.log)
        elif isinstance(entry, Integer):
            params[key] = trial.suggest_int(
                key, entry.low, entry.high, step=entry.step, log=entry.log
            )
        elif isinstance(entry, Choice):
            params[key] = entry.values[trial.suggest_categorical(key, range(len(entry.values)))]
    return {key: params[key] for key in search.space if key in params}


def _frozen(optuna: Any, search: Search, trial: Trial) -> Any:
    """Return a trial as one of Optuna."""
    space, states = search.space, optuna.trial.TrialState
    state = {"done": states.COMPLETE, "pruned": states.PRUNED, "running": states.RUNNING}
    values: Sequence[float] | None = None
    if trial.state == "done":
        values = [trial.scores[name] for name in search.objectives]
    return optuna.trial.create_trial(
        state=state[trial.state],
        values=values,
        params={key: _index(space[key], value) for key, value in trial.params.items()},
        distributions={key: _distribution(optuna, space[key]) for key in trial.params},
        intermediate_values=dict(trial.reports) if len(search.objectives) == 1 else {},
    )


def _index(entry: Range, value: Any) -> Any:
    return entry.index(value) if isinstance(entry, Choice) else value


def _distribution(optuna: Any, entry: Range) -> Any:
    distributions = optuna.distributions
    if isinstance(entry, Float):
        return distributions.FloatDistribution(entry.low, entry.high, log=entry.log)
    if isinstance(entry, Integer):
        return distributions.IntDistribution(entry.low, entry.high, log=entry.log, step=entry.step)
    assert isinstance(entry, Choice)
    return distributions.CategoricalDistribution(range(len(entry.values)))
