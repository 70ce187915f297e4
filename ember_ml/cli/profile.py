"""`ember profile`: where the time of a training run goes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.configs.train_run import TrainRunConfig
    from ember_ml.nn import Module
    from ember_ml.training import Trainer
    from ember_ml.training.profiling import ProfileOptions


def profile(
    settings: Settings,
    config: Annotated[Path, typer.Argument(help="YAML file of `ember train`.")],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes, such as batch_size=64 or trainer.precision=bfloat16.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Number of steps to profile.")] = 5,
    warmup: Annotated[int, typer.Option(help="Number of steps before the profiled ones.")] = 3,
    out: Annotated[Path, typer.Option("--output", help="Folder of the report.")] = Path("profile"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are not parts of a profile.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Profile the first steps of a training run: time by module and op, memory, share of peak."""
    from ember_ml.configs.train_run import TrainRunConfig
    from ember_ml.training.profiling import ProfileOptions
    from ember_ml.training.profiling.writing import check_folder

    options = ProfileOptions(steps=steps, warmup=warmup, out=out, overwrite=overwrite)
    check_folder(out, overwrite)
    run_config = TrainRunConfig.load(config, changes or ())
    seed = settings.seed if settings.seed is not None else run_config.trainer.seed or 0
    run_config = run_config.override(trainer={**run_config.trainer.to_dict(), "seed": seed})
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        trainer = _run(run_config, config.parent, options, progress=not as_json)
    assert trainer.profiler is not None
    result, page = trainer.profiler.result, out / "profile.html"
    if as_json:
        output.write_json({**result.to_dict(), "page": str(page)})
        return
    output.console().print(result)
    output.say()
    output.say(f"page   {page}")
    output.say(f"trace  {out / 'trace.json'} (open it in chrome://tracing or ui.perfetto.dev)")


def _run(
    config: TrainRunConfig, folder: Path, options: ProfileOptions, *, progress: bool
) -> Trainer:
    """Train the model of a YAML file until its profile is complete; save only the profile."""
    from ember_ml import ops
    from ember_ml.cli.train import default_loss
    from ember_ml.cli.training_data import load_data
    from ember_ml.training import Trainer

    data = load_data(config, folder, None)
    ops.random.set_seed(config.trainer.seed or 0)
    model: Module = config.model_config_for(data.vocab_size).create()
    loss = default_loss(config, data)
    trainer = Trainer(model, loss, config=config.trainer, profile=options, progress=progress)
    assert trainer.profiler is not None
    trainer.profiler.stops = True
    size = min(config.batch_size, len(data.train))
    steps = max(options.total, _steps_of(config, len(data.train), size))  # for schedules
    trainer.fit(data.train, steps=steps, batch_size=size)
    return trainer


def _steps_of(config: TrainRunConfig, examples: int, batch_size: int) -> int:
    """Return the number of steps of a training run."""
    if config.epochs is None and config.steps is not None:
        return config.steps
    per_epoch = -(-examples // (batch_size * config.trainer.accumulate))
    steps = (config.epochs or 1) * per_epoch
    return steps if config.steps is None else min(steps, config.steps)
