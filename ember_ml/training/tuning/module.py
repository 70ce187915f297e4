"""The tuner: proposes hyperparameters, records scores and learns from all of them."""

from __future__ import annotations

import hashlib
import math
import os
import random
import warnings
import weakref
from collections.abc import Mapping
from typing import Any, Literal, cast

from ember_ml import registry
from ember_ml.backend import get_backend
from ember_ml.data.errors import check_integer
from ember_ml.registry.base import close_matches
from ember_ml.training.sweeps import ProcessRunner, Runner
from ember_ml.training.trainer.sources import DataLike
from ember_ml.training.tuning import owners
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.execution import Objective, run_trial
from ember_ml.training.tuning.history import TuningHistory
from ember_ml.training.tuning.importance import importance
from ember_ml.training.tuning.meta_features import meta_features
from ember_ml.training.tuning.parallel import objective_jobs, trial_events
from ember_ml.training.tuning.pareto import pareto_front
from ember_ml.training.tuning.population import Population
from ember_ml.training.tuning.pruning import Pruner
from ember_ml.training.tuning.samplers.base import Sampler, Search
from ember_ml.training.tuning.scores import by_task
from ember_ml.training.tuning.space import SearchSpace
from ember_ml.training.tuning.train_objective import TrainObjective, model_of
from ember_ml.training.tuning.train_segment import segment_jobs
from ember_ml.training.tuning.trial import Trial, as_number, check_value


class SelfTuningModule:
    """Search for hyperparameters that learns from the history of other tasks.

    `ask` returns a trial, `tell` records its score, and `fit` does both in a loop. Every event is a
    line of the history file, which several processes may write at the same time. After a crash,
    completed trials are not repeated, and `ask` first returns the trials whose process has ended.

    Several tasks of the same space share a history file: what was learned from one task is the
    starting point for the next.

    Args:
        space: The search space, or the mapping that describes it.
        history: Path of the history file. None keeps the history in memory.
        metric: Name of the score.
        mode: Whether the metric is to be maximized ("max") or minimized ("min").
        sampler: Sampler as a name, a config or an object: "random", "tpe", "mean-score",
            "meta-model", or "auto", which selects one by cross-validation on the history.
        pruner: Pruner as a name, a config or an object, such as "asha". Default: none.
        objectives: "min" or "max" for each objective, if there are several; the metric must be one
            of them. Default: the metric alone.
        seed: Seed of all proposals, and of the seeds of the trials.
        task: Name of the task. Default: "default", or a digest of the first meta-features.
        source: Name of the source of the data, which several tasks may share. Default: the task.
        base: Config that `fit` applies the trials to, for training data; see `fit`.

    Example:
        >>> from ember_ml.training.tuning import Float, SelfTuningModule
        >>> tuner = SelfTuningModule({"x": Float(-1.0, 1.0)}, history=None, sampler="random")
        >>> for _ in range(8):
        ...     trial = tuner.ask()
        ...     tuner.tell(trial, -trial["x"] ** 2)
        >>> tuner.best.scores["val_accuracy"] <= 0.0
        True
    """

    def __init__(
        self,
        space: SearchSpace | Mapping[str, Any],
        history: str | os.PathLike[str] | None = "runs.jsonl",
        metric: str = "val_accuracy",
        mode: Literal["min", "max"] = "max",
        sampler: Any = "auto",
        pruner: Any = None,
        objectives: Mapping[str, str] | None = None,
        seed: int = 0,
        *,
        task: str | None = None,
        source: str | None = None,
        base: Mapping[str, Any] | None = None,
    ) -> None:
        self.space = space if isinstance(space, SearchSpace) else SearchSpace(space)
        self.metric = metric
        self.objectives = _objectives(metric, mode, objectives)
        self.seed = check_integer("SelfTuningModule", "seed", seed, least=0)
        self.sampler = _component("samplers", sampler, Sampler)
        self.pruner = None if pruner is None else _component("pruners", pruner, Pruner)
        if self.pruner is not None:
            self.pruner.mode = cast("Any", self.objectives[metric])
        self.history = TuningHistory(history, self.space, self.objectives, self.pruner)
        self.base = None if base is None else dict(base)
        self.meta: dict[str, float] = {}
        self._task, self._source = _name("task", task), _name("source", source)
        self._owner = owners.Owner()
        self._own: set[int] = set()  # trials that this tuner runs

    @property
    def task(self) -> str:
        """Name of the task."""
        return self._task or "default"

    @property
    def source(self) -> str:
        """Name of the source of the data."""
        return self._source or self.task

    @property
    def trials(self) -> list[Trial]:
        """Trials of the task, in the order of their numbers."""
        self.history.refresh()
        return self.history.of_task(self.task)

    def ask(self, meta: Mapping[str, float] | None = None) -> Trial:
        """Return the next trial: one whose process has ended, or a new one.

        Args:
            meta: Meta-features of the task, from `meta_features`. Default: those of the last call.
        """
        self.set_meta(meta)
        with self.history.locked():
            lost = self.lost()
            if lost:
                trial = self.history.restart(lost[0], self._owner.to_dict())
            else:
                trial = self.history.start(self._propose(), self._owner.to_dict())
        self._own.add(trial.id)
        return self._listen(trial)

    def _listen(self, trial: Trial) -> Trial:
        tuner = weakref.ref(self)  # a trial that is kept must not make its tuner look alive

        def report(step: int, value: float) -> bool:
            own = tuner()
            if own is None:
                raise TuningError(f"report: the tuner of trial {trial.id} does not exist any more")
            return own.report(trial, step, value)

        trial.listener = report
        return trial

    def set_meta(self, meta: Mapping[str, float] | None) -> None:
        """Set the meta-features of the task; None leaves them as they are.

        Args:
            meta: Meta-features, from `meta_features`.
        """
        if meta is None:
            return
        self.meta = _checked_meta(meta)
        if self._task is None and self.meta:
            text = repr(sorted(self.meta.items()))
            self._task = f"task-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def lost(self) -> list[Trial]:
        """Return the trials of the task that were started and whose process has ended."""
        return [
            trial
            for trial in self.history.of_task(self.task)
            if not trial.is_over
            and trial.id not in self._own
            and not (trial.owner.get("token") != self._owner.token and owners.is_alive(trial.owner))
        ]

    def _propose(self) -> Trial:
        number = max(self.history.trials, default=-1) + 1
        seed = random.Random(f"{self.seed}/{self.task}/{number}").getrandbits(32)
        search = self.search(seed)
        params = self.space.check(self.sampler.propose(search))
        return Trial(
            id=number,
            params=params,
            task=self.task,
            source=self.source,
            meta=self.meta,
            seed=seed,
            sampler=self.sampler.name,
        )

    def search(self, seed: int = 0) -> Search:
        """Return what a sampler sees of the search.

        Args:
            seed: Seed of the sampler's random draws.
        """
        return Search(
            space=self.space,
            objectives=self.objectives,
            trials=self.history.of_task(self.task),
            others=self.history.others(self.task),
            meta=self.meta,
            source=self.source,
            seed=seed,
        )

    def report(self, trial: Trial, step: int, value: float) -> bool:
        """Record a value during a trial; return True if the pruner ends the trial.

        A NaN or infinite value is not recorded, and ends the trial.

        Args:
            trial: Trial that `ask` returned.
            step: Number of training steps, or epochs, so far.
            value: Value of the metric.
        """
        own = self._running(trial, "report")
        step = check_integer("report", "step", step, least=0)
        if not math.isfinite(number := as_number("report", value)):
            trial.stopped = own.stopped = True
            return True
        self.history.add("report", own, step=step, value=number)
        trial.stopped = own.stopped
        return own.stopped

    def tell(self, trial: Trial, score: float | Mapping[str, float]) -> None:
        """Record the score of a trial.

        Args:
            trial: Trial that `ask` returned.
            score: Value of the metric, or the value of each objective.
        """
        own = self._running(trial, "tell")
        values = self._values(score, own)
        self._end(own, "told", values=values)

    def prune(self, trial: Trial) -> None:
        """Record that a trial ended early; its value is the last report.

        Args:
            trial: Trial that `ask` returned.
        """
        own = self._running(trial, "prune")
        values = {self.metric: own.reports[-1][1]} if own.reports else {}
        self._end(own, "pruned", values=values)

    def fail(self, trial: Trial, reason: str) -> None:
        """Record that a trial failed.

        Args:
            trial: Trial that `ask` returned.
            reason: Text of the error.
        """
        self._end(self._running(trial, "fail"), "failed", reason=str(reason))

    def _end(self, trial: Trial, kind: str, **fields: Any) -> None:
        with self.history.locked():
            self._running(trial, kind)  # another process may have ended it
            self.history.add(kind, trial, **fields)
        self._own.discard(trial.id)

    def _running(self, trial: Trial, where: str) -> Trial:
        """Return the trial of the history; raise an error if it is unknown or over."""
        own = self.history.trials.get(trial.id) if isinstance(trial, Trial) else None
        if own is None or own.params != trial.params or own.task != trial.task:
            raise TuningError(
                f"{where}: {trial!r:.80} is not a trial of this history; use one that ask returned"
            )
        if own.is_over:
            raise TuningError(
                f"{where}: trial {own.id} is already over: its state is {own.state!r}"
            )
        return own

    def _values(self, score: float | Mapping[str, float], trial: Trial) -> dict[str, float]:
        where = f"tell: trial {trial.id}"
        if not isinstance(score, Mapping):
            if len(self.objectives) > 1:
                raise TuningError(
                    f"{where}: the score must be a dict with the objectives "
                    f"{', '.join(self.objectives)}, not {score!r:.60}"
                )
            return {self.metric: check_value(where, score)}
        for name in score:
            if name not in self.objectives:
                raise TuningError(
                    f"{where}: there is no objective {name!r}"
                    f"{close_matches(str(name), self.objectives)}"
                )
        missing = [name for name in self.objectives if name not in score]
        if missing:
            raise TuningError(f"{where}: the score has no value of {', '.join(missing)}")
        return {name: check_value(f"{where}: {name}", score[name]) for name in self.objectives}

    @property
    def best(self) -> Trial | None:
        """Completed trial of the task with the best metric; None if there is none."""
        done = [trial for trial in self.trials if trial.state == "done"]
        sign = 1.0 if self.objectives[self.metric] == "max" else -1.0
        return max(done, key=lambda trial: sign * trial.scores[self.metric], default=None)

    @property
    def front(self) -> list[Trial]:
        """Completed trials of the task that no other one exceeds in all objectives."""
        done = [trial for trial in self.trials if trial.state == "done"]
        return pareto_front(done, self.objectives)

    def explain(self) -> dict[str, float]:
        """Return the importance of each hyperparameter for the task; the values add up to 1.

        It is the share of the hyperparameter in the variance of the score that the meta-model
        predicts; see `importance`. The model learns from all tasks of the history.
        """
        self.history.refresh()
        signs = {name: 1.0 if mode == "max" else -1.0 for name, mode in self.objectives.items()}
        tasks = by_task(list(self.history.trials.values()), {self.metric: signs[self.metric]})
        return importance(self.space, tasks, self.meta, self.seed)

    def fit(
        self,
        objective: Objective | DataLike,
        validation: DataLike | None = None,
        *,
        budget: int = 8,
        meta: Mapping[str, float] | None = None,
        workers: int | None = None,
        runner: Runner | None = None,
    ) -> Trial | None:
        """Run trials until the task has `budget` of them in the history, and return the best.

        Trials that are in the history already count, so that the same call continues a search that
        was stopped. A trial that raises an error, diverges or runs out of memory is recorded as
        failed, and the search goes on.

        Args:
            objective: Function of a trial that returns its score, or the value of each objective.
                Or training data, for trials that train `base` with the values of the trial.
            validation: Validation data, if the first argument is training data.
            budget: Number of trials of the task, in any state, in the history file.
            meta: Meta-features of the task. Default: those of the training data, if there are any.
            workers: Number of processes that run trials in parallel, on one thread each. The
                objective must then be a function at the top level of a module. Default: trials
                run in this process, one after the other.
            runner: Runs the trials instead of processes, such as a `RayRunner`.
        """
        budget = check_integer("fit", "budget", budget, least=1)
        function = self.objective_of(objective, validation)
        if meta is None and isinstance(function, TrainObjective):
            meta = meta_features(function.train, model_of(function.base))
        self.set_meta(meta)
        if workers is not None or runner is not None:
            runner = runner or ProcessRunner(workers, get_backend())
            for _ in trial_events(self, runner, objective_jobs(function), budget):
                pass
            return self.best
        while True:
            with self.history.locked():  # the decision and the trial are one transaction
                known = self.history.of_task(self.task)
                if len(known) >= budget and not self.lost():
                    break
                trial = self.ask()
            self.run(trial, function)
        self._warn_without_result()
        return self.best

    def fit_population(
        self,
        train: DataLike,
        validation: DataLike,
        folder: str | os.PathLike[str],
        *,
        size: int = 8,
        generations: int = 8,
        interval: int = 100,
        workers: int | None = None,
        runner: Runner | None = None,
    ) -> Population:
        """Train a population whose hyperparameters change during training, and return it.

        `population.best()` has the checkpoint of the best member, and `population.schedule()` the
        hyperparameters that led to it. The same call continues after an interruption. Trials of
        the history are not used.

        Args:
            train: Training data, for the config `base`. The space may only contain options of the
                trainer, such as "trainer.learning_rate".
            validation: Validation data.
            folder: Folder of the checkpoints and of the log.
            size: Number of members.
            generations: Number of generations.
            interval: Number of training steps of a generation.
            workers: Number of processes. Default: the number of cores. The result does not depend
                on it.
            runner: Trains the members instead of processes, such as a `RayRunner`.
        """
        objective = self.objective_of(train, validation)
        assert isinstance(objective, TrainObjective)
        jobs = segment_jobs(objective)
        population = Population(
            self.space,
            folder,
            size=size,
            generations=generations,
            interval=interval,
            mode=self.objectives[self.metric],
            seed=self.seed,
        )
        for _ in population.events(runner or ProcessRunner(workers, get_backend()), jobs):
            pass
        return population

    def _warn_without_result(self) -> None:
        trials = self.trials
        failed = [trial for trial in trials if trial.state == "failed"]
        if failed and len(failed) == len(trials):
            warnings.warn(
                f"fit: all {len(trials)} trials failed, the last one with: {failed[-1].reason}",
                stacklevel=3,
            )

    def objective_of(
        self, objective: Objective | DataLike, validation: DataLike | None = None
    ) -> Objective:
        """Return the objective of arguments of `fit`: a function, or data to train `base` on.

        Args:
            objective: Function of a trial, or training data.
            validation: Validation data, if the first argument is training data.
        """
        if validation is None:
            if not callable(objective):
                raise TuningError(
                    f"fit: needs a function of a trial, or training and validation data, not "
                    f"{objective!r:.60}"
                )
            return objective
        if self.base is None:
            raise TuningError(
                "fit: training data needs a config: SelfTuningModule(..., base={'model': ..., "
                "'trainer': ..., 'epochs': ...})"
            )
        data = cast("DataLike", objective)
        return TrainObjective(self.space, self.base, data, validation, tuple(self.objectives))

    def run(self, trial: Trial, objective: Objective) -> None:
        """Run a trial in this process, and record its outcome.

        Args:
            trial: Trial that `ask` returned.
            objective: Function of the trial; see `run_trial`.
        """
        try:
            outcome = run_trial(
                objective, trial.to_dict(), lambda step, value: self.report(trial, step, value)
            )
        except BaseException:  # Ctrl-C: the next `ask` returns the trial again
            self._own.discard(trial.id)
            raise
        self.record(trial, outcome)

    def release(self, *trials: Trial) -> None:
        """Give up trials that this tuner started and that still run; `ask` returns them again.

        Args:
            *trials: Trials that `ask` returned.
        """
        self._own.difference_update(trial.id for trial in trials)

    def record(self, trial: Trial, outcome: Mapping[str, Any]) -> None:
        """Record the outcome of a trial.

        Args:
            trial: Trial that `ask` returned.
            outcome: What `run_trial` returned.
        """
        if outcome["kind"] == "pruned" and not trial.reports:
            reason = "diverged: the first report is not finite"
            if not trial.stopped:
                reason = "TrialPruned was raised before the first report"
            outcome = {"kind": "failed", "reason": reason}
        if outcome["kind"] == "told":
            try:
                self.tell(trial, outcome["values"])
            except TuningError as error:
                self.fail(trial, str(error))
        elif outcome["kind"] == "pruned":
            self.prune(trial)
        else:
            self.fail(trial, outcome["reason"])


def _checked_meta(meta: Mapping[str, float]) -> dict[str, float]:
    """Return meta-features as finite numbers."""
    if not isinstance(meta, Mapping):
        raise TuningError(
            f"ask: meta must be a mapping of names to numbers, as meta_features returns it, not "
            f"{meta!r:.60}"
        )
    numbers = {str(name): as_number(f"ask: meta {name!r}", value) for name, value in meta.items()}
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise TuningError(f"ask: the meta-feature {name!r} must be finite, not {number}")
    return numbers


def _objectives(metric: str, mode: str, objectives: Mapping[str, str] | None) -> dict[str, str]:
    """Return "min" or "max" for each objective, with the metric first."""
    if not isinstance(metric, str) or not metric:
        raise TuningError(f"SelfTuningModule: metric must be a name, not {metric!r:.60}")
    if objectives is not None and not isinstance(objectives, Mapping):
        raise TuningError(
            "SelfTuningModule: objectives must map each name to 'min' or 'max', not "
            f"{objectives!r:.60}"
        )
    given = dict(objectives) if objectives else {metric: mode}
    if metric not in given:
        raise TuningError(
            f"SelfTuningModule: the metric {metric!r} must be one of the objectives "
            f"{', '.join(given)}{close_matches(metric, given)}"
        )
    for name, each in given.items():
        if each not in ("min", "max"):
            raise TuningError(
                f"SelfTuningModule: the mode of {name} must be 'min' or 'max', not {each!r:.60}"
            )
    return {metric: given[metric]} | given


def _name(argument: str, value: str | None) -> str | None:
    """Return a name that a file can hold."""
    if value is None:
        return None
    if not isinstance(value, str) or value.encode(errors="ignore").decode() != value:
        raise TuningError(f"SelfTuningModule: {argument} must be a name, not {value!r:.60}")
    return value


def _component(kind: str, value: Any, cls: type) -> Any:
    built = registry.build(kind, value)
    if not isinstance(built, cls):
        raise TuningError(
            f"SelfTuningModule: expected one of the {kind} as a name, a config or an object, not "
            f"{value!r:.60}"
        )
    return built
