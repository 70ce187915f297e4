"""Segments of population-based training that train a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml._core.folders import holds
from ember_ml.configs.training import TrainerConfig
from ember_ml.training.sweeps.jobs import Job, Report, work_name
from ember_ml.training.trainer import Trainer
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.parallel import without_tensors
from ember_ml.training.tuning.population import Segment
from ember_ml.training.tuning.space import SearchSpace
from ember_ml.training.tuning.train_objective import TrainObjective, model_of


def check_population(space: SearchSpace, trainer: Mapping[str, Any]) -> None:
    """Raise an error if a config cannot be trained as a population.

    Args:
        space: Hyperparameters of the population.
        trainer: Options of the trainer.
    """
    if trainer.get("schedule") is not None:
        raise TuningError(
            "Population: the hyperparameters change from generation to generation, so there must "
            f"be no schedule, not {trainer['schedule']!r:.80}; remove trainer.schedule"
        )
    for key in space:
        if not key.startswith("trainer.") or key.endswith(".type") or key == "trainer.optimizer":
            raise TuningError(
                f"Population: {key!r} cannot change during training; use options of the trainer, "
                "such as 'trainer.learning_rate' or 'trainer.optimizer.weight_decay'"
            )


def segment_jobs(objective: TrainObjective) -> Callable[[Segment], Job]:
    """Return a function that returns the job of a segment.

    Args:
        objective: Config and data to train. The metric is the first of its objectives.
    """
    check_population(objective.space, dict(objective.base.get("trainer") or {}))
    plain, name = without_tensors(objective), work_name(train_segment)
    return lambda segment: Job(name, {"objective": plain, "segment": segment._asdict()})


def train_segment(data: Mapping[str, Any], report: Report) -> float:
    """Train a member during a generation, write its checkpoint, and return its score.

    Args:
        data: The objective, and the segment as plain data.
        report: Not used.
    """
    return run_segment(data["objective"], Segment(**data["segment"]))


def run_segment(objective: TrainObjective, segment: Segment) -> float:
    """Train a member during a generation, write its checkpoint, and return its score.

    Args:
        objective: Config and data.
        segment: What to train.
    """
    config = objective.space.apply(objective.base, segment.params)
    options = {**dict(config.get("trainer") or {}), "seed": segment.seed}
    ops.random.set_seed(segment.seed)
    trainer = Trainer(
        model_of(config),
        config=TrainerConfig.from_dict({k: v for k, v in options.items() if v is not None}),
        progress=False,
    )
    if segment.start is not None:
        _continue(trainer, Path(segment.start))
    size = int(config.get("batch_size") or 32)
    trainer.fit(objective.train, until_step=segment.until_step, batch_size=size)
    trainer.save(segment.end)
    evaluated = trainer.evaluate(objective.validation)
    values = {f"val_{key}": value for key, value in evaluated.items()}
    metric = objective.objectives[0]
    if metric not in values:
        raise TuningError(f"Population: the evaluation has no {metric!r}; it has {list(values)}")
    return float(values[metric])


def _continue(trainer: Trainer, start: Path) -> None:
    """Resume from a checkpoint, but keep the options of the trainer's own config."""
    if not holds(start, "training.json"):
        raise TuningError(f"Population: the checkpoint {start} is missing")
    groups = [group.plain() for group in trainer.optimizer.groups]
    trainer.resume(start)
    state: dict[str, Any] = {**trainer.optimizer.state_dict(), "groups": groups}
    trainer.optimizer.load_state_dict(state)
