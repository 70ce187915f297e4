"""The trials of `ember tune`, which worker processes run."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ember_ml.cli.training_data import TrainingData, load_data, load_pipeline_data
from ember_ml.configs.pipeline_run import PipelineRunConfig
from ember_ml.configs.train_run import TrainRunConfig
from ember_ml.data import Dataset
from ember_ml.training.pipelines import TrainingPipeline
from ember_ml.training.sweeps import Report
from ember_ml.training.tuning import SearchSpace, TrainObjective, Trial, TuningError, run_trial
from ember_ml.training.tuning.population import Segment
from ember_ml.training.tuning.prune_trial import PruneTrial
from ember_ml.training.tuning.train_segment import run_segment

DATA_KEYS = ("data", "validation")
"""Keys of a config that determine its datasets, with the seed."""
_LOADED: dict[str, TrainingData] = {}
"""Datasets of the last trial, by their config: most trials of a search share them."""


def work(data: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Run a trial of `ember tune`, and return its outcome.

    Args:
        data: The config without the values of the trial, the space, the names of the objectives,
            the folder of the YAML file, `validate_every`, and the trial, as plain data.
        report: Sends (step, value) to the tuner; returns whether the trial continues.
    """
    objective = functools.partial(_run, data)
    return run_trial(objective, data["trial"], lambda step, value: not report((step, float(value))))


def _run(data: Mapping[str, Any], trial: Trial) -> dict[str, float]:
    config = SearchSpace(data["space"]).apply(data["config"], trial.params)
    folder, objectives = Path(data["folder"]), tuple(data["objectives"])
    if "pipeline" in config:
        return _run_pipeline(PipelineRunConfig.from_dict(config), folder, objectives, trial)
    objective = _objective(TrainRunConfig.from_dict(config), data)
    limits = {"validate_every": data["validate_every"]}
    return objective.run({**objective.base, **limits}, trial)


def _objective(config: TrainRunConfig, data: Mapping[str, Any]) -> TrainObjective:
    """Return the training of a config on its data."""
    loaded, space = datasets(config, Path(data["folder"])), SearchSpace(data["space"])
    plain, objectives = plain_config(config, loaded), tuple(data["objectives"])
    return TrainObjective(space, plain, loaded.train, held_out(loaded), objectives)


def segment_work(data: Mapping[str, Any], report: Report) -> float:
    """Train a member of a population during a generation, and return its score.

    Args:
        data: As for `work`, with a segment in place of the trial.
        report: Not used.
    """
    objective = _objective(TrainRunConfig.from_dict(data["config"]), data)
    return run_segment(objective, Segment(**data["segment"]))


def plain_config(config: TrainRunConfig, data: TrainingData) -> dict[str, Any]:
    """Return the config of a `TrainObjective`, with the defaults that depend on the data.

    Args:
        config: Config of the training run.
        data: Its data.
    """
    trainer = config.trainer.to_dict()
    if trainer["loss"] is None and (data.vocab_size or data.labels):
        trainer["loss"] = "cross_entropy"
    return {
        "model": config.model_config_for(data.vocab_size).to_dict(),
        "trainer": {key: value for key, value in trainer.items() if value is not None},
        "epochs": config.epochs,
        "steps": config.steps,
        "batch_size": min(config.batch_size, len(data.train)),
    }


def held_out(data: TrainingData) -> Dataset:
    """Return the validation data; raise an error if there is none.

    Args:
        data: Data of a run.
    """
    if data.validation is None:
        raise TuningError("validation: a search needs validation data; set validation: 0.1")
    return data.validation


def datasets(config: TrainRunConfig, folder: Path) -> TrainingData:
    """Return the datasets of a training run; those of the last call are kept in memory.

    Args:
        config: Config of the training run.
        folder: Folder of the YAML file.
    """
    parts = {name: value for name, value in config.to_dict().items() if name in DATA_KEYS}
    key = json.dumps([parts, config.trainer.seed, str(folder)], sort_keys=True)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_data(config, folder, None)
    return _LOADED[key]


def _run_pipeline(
    config: PipelineRunConfig, folder: Path, objectives: tuple[str, ...], trial: Trial
) -> dict[str, float]:
    """Train a pipeline in a temporary folder, and return the value of each objective."""
    assert not isinstance(config.pipeline, str), "checked when the search was created"
    data = load_pipeline_data(config, folder, split=True)
    with tempfile.TemporaryDirectory() as out:
        pipeline: TrainingPipeline = config.pipeline.override(folder=str(Path(out, "run"))).create()
        callbacks = [PruneTrial(trial, objectives[0])]
        pipeline.fit(
            data.train, held_out(data), labels=data.labels, callbacks=callbacks, progress=False
        )
        values = {f"val_{name}": value for name, value in pipeline.results["validation"].items()}
    return {name: float(values[name]) for name in objectives}
