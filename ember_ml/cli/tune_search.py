"""The search of `ember tune`: its config, its checks before the first trial, and its results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ember_ml._core.files import write_atomically
from ember_ml.backend import get_backend
from ember_ml.cli.training_data import load_pipeline_data
from ember_ml.cli.tune_work import datasets, held_out, plain_config, segment_work, work
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.pipeline_run import PipelineRunConfig
from ember_ml.configs.train_run import TrainRunConfig
from ember_ml.configs.training import TrainerConfig
from ember_ml.configs.tune_run import TuneFields, load_tune_config
from ember_ml.registry.base import close_matches
from ember_ml.training.sweeps import Job, Runner, work_name
from ember_ml.training.sweeps.live import show
from ember_ml.training.trainer.outputs import metrics_of
from ember_ml.training.tuning import (
    Population,
    SearchSpace,
    Segment,
    Trial,
    TuningError,
    meta_features,
)
from ember_ml.training.tuning.folder import TuningFolder
from ember_ml.training.tuning.live import TuningProgress
from ember_ml.training.tuning.parallel import trial_events
from ember_ml.training.tuning.train_objective import MEASURES, model_of
from ember_ml.training.tuning.train_segment import check_population

if TYPE_CHECKING:
    from rich.console import Console

BEST = "best.yaml"


class Search:
    """A search for the hyperparameters of a training run.

    Args:
        base: Config without the values of a trial.
        tune: Space, metric and method.
        folder: Folder of the search.
        config_folder: Folder of the YAML file; data files are also searched there.
        task: Name of the task in the history.
    """

    def __init__(
        self,
        base: TrainRunConfig | PipelineRunConfig,
        tune: TuneFields,
        folder: Path,
        config_folder: Path,
        task: str,
    ) -> None:
        self.base = base
        self.tune = tune
        self.folder = TuningFolder(folder)
        self.config_folder = config_folder
        self.task = task
        self.backend = get_backend()
        self.space = SearchSpace(tune.space)
        self.objectives = tuple(tune.objectives or {tune.metric: tune.mode})

    @classmethod
    def load(
        cls, path: Path, changes: Iterable[str], folder: Path, *, seed: int | None = None
    ) -> Self:
        """Return the search that a YAML file describes.

        Args:
            path: Path of the file.
            changes: Changes such as "tune.metric=val_loss".
            folder: Folder of the search.
            seed: Seed of the proposals and of training. Default: those of the file.
        """
        config = load_tune_config(path, changes)
        tune = config.tune if seed is None else config.tune.override(seed=seed)
        base = config.base()
        if isinstance(base, TrainRunConfig):  # as `ember train` does
            own = seed if seed is not None else base.trainer.seed or 0
            base = base.override(trainer={**base.trainer.to_dict(), "seed": own})
        return cls(base, tune, folder, path.parent, tune.task or path.stem)

    def open(self, budget: int, population: int | None = None) -> int:
        """Check the search, create its folder, and return the number of trials that are over.

        Args:
            budget: Number of trials.
            population: Number of members of a population, instead of trials.
        """
        meta = self._check()
        about = {
            "config": self.base.to_dict(),
            "tune": self.tune.to_dict(),
            "backend": self.backend,
            "task": self.task,
            "budget": budget,
        }
        if population is not None:
            if not isinstance(self.base, TrainRunConfig):
                raise TuningError("--population needs a training run, not a pipeline")
            check_population(self.space, self.base.trainer.to_dict())
        self.folder.check(about)
        self.folder.open(about)
        self.tuner = self.folder.tuner(about)
        self.meta = meta
        return sum(trial.is_over for trial in self.tuner.trials)

    def _check(self) -> dict[str, float] | None:
        """Check the space, the metric and the data; return the meta-features of the data."""
        for positions in (0.0, 1.0):
            self.config_of(self.space.at(dict.fromkeys(self.space, positions)))
        self._check_objectives()
        if isinstance(self.base, PipelineRunConfig):
            held_out(load_pipeline_data(self.base, self.config_folder, split=True))
            return None
        data = datasets(self.base, self.config_folder)
        held_out(data)
        return meta_features(data.train, model_of(plain_config(self.base, data)))

    def config_of(self, params: dict[str, Any]) -> TrainRunConfig | PipelineRunConfig:
        """Return the config with the values of a trial.

        Args:
            params: Values by dotted key.
        """
        return type(self.base).from_dict(self.space.apply(self.base.to_dict(), params))

    def _check_objectives(self) -> None:
        """Raise an error if training does not report an objective."""
        known = reported(_trainer_of(self.base))
        if isinstance(self.base, TrainRunConfig):
            known += [*MEASURES, "latency"]
        for name in (self.tune.metric, *self.objectives):
            if name not in known:
                hint = close_matches(name, known)
                problem = (
                    f"training does not report {name!r}{hint}; it reports {', '.join(known)}; add "
                    "metrics to trainer.metrics"
                )
                raise ConfigError("tune", [Problem(("metric",), problem)])

    def run(self, runner: Runner, budget: int, console: Console) -> None:
        """Run the trials and show their progress.

        Args:
            runner: Runs the trials.
            budget: Number of trials.
            console: Console to write to.
        """
        self.tuner.set_meta(self.meta)
        events = trial_events(self.tuner, runner, self._job, budget)
        show(TuningProgress(self.tuner, budget), events, console)

    def _data(self) -> dict[str, Any]:
        """Return the data that all jobs share."""
        return {
            "config": self.base.to_dict(),
            "space": self.space.to_dict(),
            "objectives": list(self.tuner.objectives),
            "folder": str(self.config_folder.absolute()),
            "validate_every": self.tune.validate_every,
        }

    def _job(self, trial: Trial) -> Job:
        return Job(work_name(work), {**self._data(), "trial": trial.to_dict()})

    def population(self, size: int) -> Population:
        """Return the population that trains the config instead of separate trials.

        A generation is `validate_every` steps; by default, an eighth of the training.

        Args:
            size: Number of members.
        """
        assert isinstance(self.base, TrainRunConfig), "checked by `open`"
        steps = _num_steps(self.base, len(datasets(self.base, self.config_folder).train))
        interval = self.tune.validate_every or max(1, steps // 8)
        return Population(
            self.space,
            self.folder.path,
            size=size,
            generations=-(-steps // interval),
            interval=interval,
            mode=self.tuner.objectives[self.tune.metric],
            seed=self.tune.seed,
        )

    def segment_job(self, segment: Segment) -> Job:
        """Return the job of a segment of the population.

        Args:
            segment: What to train.
        """
        return Job(work_name(segment_work), {**self._data(), "segment": segment._asdict()})

    def write_best(self) -> Path | None:
        """Write the best config as YAML, and return its path; None if no trial is done."""
        best = self.tuner.best
        if best is None:
            return None
        path = self.folder.path / BEST
        write_atomically(path, self.config_of(best.params).to_yaml().encode())
        return path

    def results(self) -> dict[str, Any]:
        """Return the best trial, the Pareto front and the failed trials as plain data."""
        trials, best = self.tuner.trials, self.tuner.best
        states = ("done", "pruned", "failed")
        return {
            "path": str(self.folder.path),
            "trials": {state: sum(each.state == state for each in trials) for state in states},
            "best": None if best is None else best.id,
            "scores": {} if best is None else best.scores,
            "params": {} if best is None else best.params,
            "front": [each.id for each in self.tuner.front],
            "failed": {each.id: each.reason for each in trials if each.state == "failed"},
        }


def _num_steps(config: TrainRunConfig, examples: int) -> int:
    """Return the number of training steps of a run."""
    per_epoch = -(-examples // min(config.batch_size, examples))
    limits = [config.steps, None if config.epochs is None else config.epochs * per_epoch]
    return min((limit for limit in limits if limit is not None), default=per_epoch)


def _trainer_of(base: TrainRunConfig | PipelineRunConfig) -> TrainerConfig:
    if isinstance(base, TrainRunConfig):
        return base.trainer
    trainer: TrainerConfig = getattr(base.pipeline, "trainer")  # noqa: B009
    return trainer


def reported(trainer: TrainerConfig) -> list[str]:
    """Return the names of the values that an evaluation reports.

    Args:
        trainer: Config of the trainer.
    """
    return ["val_loss", *(f"val_{metric.name}" for metric in metrics_of(trainer.metrics))]
