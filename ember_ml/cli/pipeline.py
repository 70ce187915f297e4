"""`ember pipeline`: fit, train and run pipelines from YAML files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings, command

if TYPE_CHECKING:
    from ember_ml.cli.training_data import SelfTrainingData, TrainingData
    from ember_ml.configs.pipeline_run import PipelineRunConfig
    from ember_ml.data import Dataset
    from ember_ml.nn.pipeline import Pipeline
    from ember_ml.training.pipelines import SelfTrainingPipeline, TrainingPipeline

app = typer.Typer(help="Fit, train and run pipelines.", no_args_is_help=True)
OUTPUTS = "outputs.safetensors"
PREDICTIONS = "predictions.json"


@command(app, "run")
def run(
    settings: Settings,
    config: Annotated[Path, typer.Argument(help="YAML file with a pipeline and its data.")],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Changes, such as pipeline.epochs=3.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training run in the folder, if any.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the training run in the folder.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a pipeline on data: train it, or fit it and write its outputs.

    A training or self-training pipeline is trained and evaluated. Another one is fitted to the
    data if it learns from data, saved, and run. A saved one is run.
    """
    from ember_ml.configs.pipeline_run import PipelineRunConfig

    run_config = PipelineRunConfig.load(config, changes or ())
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        results = _results(run_config, config.parent, resume=resume, overwrite=overwrite)
    if as_json:
        output.write_json(results)
        return
    for key, value in results.items():
        output.say(f"{key:<12} {value}")


def _results(
    config: PipelineRunConfig, config_folder: Path, *, resume: bool, overwrite: bool
) -> dict[str, Any]:
    """Run the pipeline, and return what it reports."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.training_data import load_pipeline_data, load_self_training_data
    from ember_ml.training.pipelines import SelfTrainingPipeline, TrainingPipeline

    pipeline = _pipeline(config, config_folder)
    if isinstance(pipeline, SelfTrainingPipeline):
        few = load_self_training_data(config, config_folder)
        return _self_train(pipeline, config.out, few, resume=resume, overwrite=overwrite)
    if config.unlabeled is not None:
        raise ArgumentError("unlabeled: is for self-training pipelines")
    trains = isinstance(pipeline, TrainingPipeline)
    data = load_pipeline_data(config, config_folder, split=trains)
    if isinstance(pipeline, TrainingPipeline):
        return _train(pipeline, config.out, data, resume=resume, overwrite=overwrite)
    if resume or overwrite:
        raise ArgumentError("--resume and --overwrite are for training pipelines")
    return _apply(pipeline, config, data.train)


def _pipeline(
    config: PipelineRunConfig, config_folder: Path
) -> Pipeline | TrainingPipeline | SelfTrainingPipeline:
    """Return the pipeline that the config describes, or the saved one."""
    from ember_ml import load
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.file_data import find_path
    from ember_ml.nn.pipeline import Pipeline
    from ember_ml.training.pipelines import SelfTrainingPipeline, TrainingPipeline

    if isinstance(config.pipeline, str):
        pipeline: Any = load(
            find_path("pipeline", config.pipeline, config_folder, allow_folder=True)
        )
    elif config.pipeline.component in ("pipelines/training", "pipelines/self-training"):
        pipeline = config.pipeline.override(folder=config.out).create()
    else:
        pipeline = config.pipeline.create()
    if not isinstance(pipeline, (Pipeline, TrainingPipeline, SelfTrainingPipeline)):
        raise ArgumentError(f"pipeline: a {type(pipeline).__name__} cannot be run on data")
    return pipeline


def _train(
    pipeline: TrainingPipeline, out: str, data: TrainingData, *, resume: bool, overwrite: bool
) -> dict[str, Any]:
    """Train a pipeline, and return its results."""
    with _interruptible():
        pipeline.fit(
            data.train, data.validation, labels=data.labels, resume=resume, overwrite=overwrite
        )
    results = pipeline.results
    losses = results["epochs"][-1:]
    return {
        "step": results["step"],
        "epoch": results["epoch"],
        **({"loss": losses[0]["loss"]} if losses and "loss" in losses[0] else {}),
        **{f"val_{name}": value for name, value in results.get("validation", {}).items()},
        "pipeline": out,
    }


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Exit with the code of the signal, and a remark how to continue, after an interruption."""
    from ember_ml.training import TrainingInterrupted, TrainingTerminated

    try:
        yield
    except (TrainingInterrupted, TrainingTerminated) as stop:
        output.remark("continue with the same command and --resume")
        code = 130 if isinstance(stop, TrainingInterrupted) else 143
        raise typer.Exit(code) from None


def _self_train(
    pipeline: SelfTrainingPipeline,
    out: str,
    data: SelfTrainingData,
    *,
    resume: bool,
    overwrite: bool,
) -> dict[str, Any]:
    """Run self-training, and return its results."""
    with _interruptible():
        pipeline.fit(
            data.labeled,
            data.unlabeled,
            data.validation,
            labels=data.labels,
            resume=resume,
            overwrite=overwrite,
        )
    assert pipeline.history is not None
    first, best, last = pipeline.history[0], pipeline.history.best, pipeline.history[-1]
    shown = ("round", "selected", "val_accuracy", "ece", "temperature")
    return {
        **{name: best[name] for name in shown if name in best},
        **({"supervised": first["val_accuracy"]} if "val_accuracy" in first else {}),
        **({"note": last["note"]} if "note" in last else {}),
        "pipeline": out,
    }


def _apply(pipeline: Pipeline, config: PipelineRunConfig, data: Dataset) -> dict[str, Any]:
    """Fit the pipeline if it is new and learns from data, run it, and write what it returns."""
    from ember_ml import save

    out = Path(config.out)
    is_new = not isinstance(config.pipeline, str)
    if is_new:
        if pipeline.needs_fit:
            pipeline.fit(data)
        save(pipeline, out)
    results = {"examples": len(data), **_write(out, pipeline, data, config.batch_size)}
    return results | ({"pipeline": config.out} if is_new else {})


def _write(out: Path, pipeline: Pipeline, data: Dataset, batch_size: int) -> dict[str, Any]:
    """Run the pipeline on batches, and write its outputs: an array, or a list of labels."""
    import json

    from ember_ml import ops
    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.files import write_atomically
    from ember_ml._core.tensor import EmberTensor
    from ember_ml.nn._tensor_files import tensors_to_bytes

    parts = [_outputs(result) for result in pipeline.stream(data, batch_size)]
    if not parts:
        raise ArgumentError("data: there are no examples")
    if all(isinstance(part, list) for part in parts):
        predictions = [each for part in parts for each in part]
        text = json.dumps(predictions, ensure_ascii=False)
        write_atomically(out / PREDICTIONS, f"{text}\n".encode())
        return {"predictions": str(out / PREDICTIONS)}
    if not all(isinstance(part, EmberTensor) for part in parts):
        raise ArgumentError(
            f"pipeline: its result must be a tensor or a list, not a {type(parts[0]).__name__}"
        )
    outputs = ops.concat(parts, axis=0)
    write_atomically(out / OUTPUTS, tensors_to_bytes({"outputs": outputs}))
    return {"shape": list(outputs.shape), "outputs": str(out / OUTPUTS)}


def _outputs(result: Any) -> Any:
    """Return the outputs of a batch without its targets."""
    return result[0] if isinstance(result, tuple) else result
