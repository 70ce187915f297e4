"""`ember launch`: train one model in several processes."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from typing import Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import Settings


def launch(
    settings: Settings,
    target: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG.yaml|SCRIPT.py|MODULE:FUNCTION",
            help="YAML file of `ember train`, a script, or a function without arguments.",
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENTS",
            help="Changes of the YAML file, such as epochs=2, and options of `ember train`; or "
            "arguments of the script.",
            show_default=False,
        ),
    ] = None,
    nproc: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes of this machine.", show_default="one for each GPU, or 1"
        ),
    ] = None,
    nnodes: Annotated[
        str, typer.Option(help="Number of machines, or MIN:MAX; run the command on each.")
    ] = "1",
    rdzv_endpoint: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Address of one of several machines."),
    ] = None,
    max_restarts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Restarts from the last checkpoint after a process has failed.",
            show_default="3 on torch; MLX cannot restart",
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="How the processes of a YAML file train together: dp, fsdp, tp or pp.",
            show_default="that of the file, or dp",
        ),
    ] = None,
) -> None:
    """Train one model in several processes; continue from the last checkpoint if there is one."""
    from ember_ml.distributed.launching import Job, run_job

    words = _words(settings, target, list(arguments or ()), strategy)
    if settings.device is not None:
        os.environ["EMBER_ML_DEVICE"] = settings.device
    code = run_job(Job(words, nproc, nnodes, rdzv_endpoint, max_restarts))
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        again = [word for word in sys.argv[1:] if word != "--overwrite"]
        output.remark(f"continue with: {shlex.join(['ember', *again])}")
    raise typer.Exit(code)


def _words(
    settings: Settings, target: str, arguments: list[str], strategy: str | None
) -> list[str]:
    """Return what each process runs."""
    from ember_ml._core.errors import ArgumentError

    if target.endswith((".yaml", ".yml")):
        return _train_words(settings, target, arguments, strategy)
    if strategy is not None or settings.seed is not None or settings.plugin:
        raise ArgumentError(
            f"--strategy, --seed and --plugin are for YAML files; {target} passes its own, as in "
            "Trainer(model, strategy='fsdp', seed=0)"
        )
    is_function = ":" in target and not target.endswith(".py")
    if not is_function and not os.path.isfile(target):
        raise FileNotFoundError(2, os.strerror(2), target)
    return [target, *arguments]


def _train_words(
    settings: Settings, target: str, arguments: list[str], strategy: str | None
) -> list[str]:
    from ember_ml.configs.train_run import TrainRunConfig

    added = [] if strategy is None else [f"trainer.strategy={strategy}"]
    changes = [word for word in arguments if "=" in word and not word.startswith("-")]
    config = TrainRunConfig.load(target, [*changes, *added])  # an error is shown once
    if config.trainer.strategy is None:
        added = ["trainer.strategy=dp"]
    added += [] if {"--overwrite", "--resume"} & {*arguments} else ["--resume"]
    added += [] if settings.seed is None else ["--seed", str(settings.seed)]
    added += [word for plugin in settings.plugin or () for word in ("--plugin", plugin)]
    added += ["--debug"] if settings.debug else []
    return ["-m", "ember_ml", "train", target, *arguments, *added]
