"""`ember memory`: the memory of a training run, and what would fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.configs.training import TrainerConfig
    from ember_ml.memory import Estimate, Option
    from ember_ml.nn import Module


def memory(
    settings: Settings,
    config: Annotated[Path, typer.Argument(help="YAML file of `ember train`.")],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Changes, such as batch_size=64 or trainer.remat=blocks.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Memory to fit into, such as 8GB or 512MiB."),
    ] = None,
    measured: Annotated[
        bool, typer.Option("--measure", help="Also run a step with the whole batch and measure it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate the memory of a training step, and show which options would fit."""
    from ember_ml.memory import estimate, measure, options_that_fit, parse_bytes

    size = None if limit is None else parse_bytes(limit)
    model, batch, trainer = _run(settings, config, changes or [])
    report = estimate(model, batch, config=trainer)
    whole = measure(model, batch, config=trainer) if measured else None
    options = options_that_fit(model, batch, trainer, limit=size)
    if as_json:
        fit: dict[str, Any] = {}
        if size is not None:
            largest = report.largest_batch(size)
            fit = {"limit": size, "fits": report.peak <= size, "largest_batch": largest}
        extra = {} if whole is None else {"measured": whole.to_dict()}
        listed = [option.to_dict() for option in options]
        output.write_json({**report.to_dict(), **extra, **fit, "options": listed})
        return
    output.console().print(report)
    if whole is not None:
        output.say(_compared(report, whole.peak))
    if size is not None:
        output.say(_verdict(report, size))
    _print_options(options, report)


def _run(
    settings: Settings, path: Path, changes: list[str]
) -> tuple[Module, object, TrainerConfig]:
    """Return the model, a batch and the options of the trainer that a YAML file describes."""
    from ember_ml import ops
    from ember_ml.cli.train import default_loss
    from ember_ml.cli.training_data import load_data
    from ember_ml.configs.train_run import TrainRunConfig
    from ember_ml.training.trainer import Trainer, sources

    config = TrainRunConfig.load(path, changes)
    data = load_data(config, path.parent, None)
    ops.random.set_seed(settings.seed if settings.seed is not None else config.trainer.seed or 0)
    model: Module = config.model_config_for(data.vocab_size).create()
    trainer = Trainer(model, default_loss(config, data), config=config.trainer, progress=False)
    size = min(config.batch_size, len(data.train))
    loader = sources.loader(data.train, size, shuffle=False, seed=0)
    return model, next(iter(loader.batches(trainer.dtype))), trainer.config


def _compared(report: Estimate, peak: int) -> str:
    from ember_ml.memory import format_bytes

    return f"measured peak {format_bytes(peak)}, estimate / measured {report.peak / peak:.2f}"


def _verdict(report: Estimate, limit: int) -> str:
    """Return whether a step fits, and the largest batch size that does."""
    from ember_ml.memory import format_bytes

    largest = report.largest_batch(limit)
    fits = "fits into" if report.peak <= limit else "does not fit into"
    most = f"the largest batch size that fits is {largest}" if largest else "no batch size fits"
    return f"batch size {report.batch_size} {fits} {format_bytes(limit)}; {most}"


def _print_options(options: list[Option], report: Estimate) -> None:
    from ember_ml.memory import format_bytes

    rows = []
    for option in options:
        keys = " ".join(f"trainer.{key}={_text(value)}" for key, value in option.changes.items())
        keys += f" batch_size={option.batch_size}" if option.batch_size != report.batch_size else ""
        fits = {None: "", True: "yes", False: "no"}[option.fits]
        largest = "" if option.largest_batch is None else str(option.largest_batch)
        rows.append((option.name, format_bytes(option.peak), fits, largest, keys))
    if rows:
        output.say()
        table = output.table(rows, "option", "peak", "fits", "largest batch", "changes")
        output.console().print(table)


def _text(value: object) -> str:
    """Return the value of a change as it is written on the command line."""
    from ember_ml.configs import Config

    plain = value.to_dict() if isinstance(value, Config) else value
    if not isinstance(plain, dict):
        return str(plain)
    defaults = type(value)().to_dict() if isinstance(value, Config) else {}
    name = str(plain["type"]).rpartition("/")[2]
    kept = {key: x for key, x in plain.items() if key != "type" and x != defaults.get(key)}
    if not kept:
        return name
    return f"'{{type: {name}, {', '.join(f'{key}: {x}' for key, x in kept.items())}}}'"
