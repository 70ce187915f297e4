"""`ember tune`: search for the hyperparameters of a training run."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import output
from ember_ml.cli.mad import RayOption
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.tune_search import Search
    from ember_ml.training.sweeps import Runner


def tune(
    settings: Settings,
    config: Annotated[
        Path,
        typer.Argument(
            help="YAML file of a training run with a `tune` section; see docs/tuning.md. Or the "
            "folder of a search, to write its report again."
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE", help="Changes, such as tune.metric=val_loss.", show_default=False
        ),
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Number of trials.")] = 32,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parallel trials.", show_default="number of cores"),
    ] = None,
    ray: RayOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the search.", show_default="runs/tune-<name of the file>"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Search for the best hyperparameters of a training run, and write a report.

    Trials that the folder already has are skipped, so the same command continues an interrupted
    search, and a larger budget extends it. The exit code is 1 if no trial completed.
    """
    from ember_ml.cli.tune_search import Search

    if config.is_dir():
        _report(config, as_json)
        return
    folder = out or Path("runs", f"tune-{config.stem}")
    search = Search.load(config, changes or (), folder, seed=settings.seed)
    console = output.console(to_errors=as_json)
    done = search.open(budget)
    if done:
        console.print(f"{done} of {budget} trials are over already in {folder}")
    try:
        search.run(_runner(search, workers, ray, settings.device), budget, console)
    except KeyboardInterrupt:
        _report_interrupt(search, budget)
        raise typer.Exit(130) from None
    _finish(search, as_json)


def _runner(search: Search, workers: int | None, ray: str | None, device: str | None) -> Runner:
    from ember_ml.training.sweeps import ProcessRunner, RayRunner

    if ray is not None:
        return RayRunner(None if ray == "local" else ray, search.backend, device, workers=workers)
    return ProcessRunner(workers, search.backend, device)


def _report_interrupt(search: Search, budget: int) -> None:
    over = sum(trial.is_over for trial in search.tuner.trials)
    output.remark(
        f"\nstopped: {over} of {budget} trials are over, with results in {search.folder.path}; "
        f"continue with: {shlex.join(['ember', *sys.argv[1:]])}"
    )


def _finish(search: Search, as_json: bool) -> None:
    """Write the best config and the report, and print where they are."""
    from ember_ml.training.tuning.report import write_report

    best = search.write_best()
    page = write_report(search.folder.path)
    results = search.results() | {"report": str(page)}
    if as_json:
        output.write_json(results | {"config": None if best is None else str(best)})
    else:
        _print_results(results, best, page)
    if best is None:
        raise typer.Exit(1)


def _print_results(results: dict[str, Any], best: Path | None, page: Path) -> None:
    for number, reason in results["failed"].items():
        output.remark(f"failed: trial {number}: {reason}")
    if best is not None:
        words = "  ".join(f"{name} {value:.4g}" for name, value in results["scores"].items())
        output.say(f"best: trial {results['best']}, {words}")
        for key, value in results["params"].items():
            output.say(f"  {key}: {value}")
        output.say(f"config: {best}")
    output.say(f"report: {page}")


def _report(folder: Path, as_json: bool) -> None:
    """Write the report of a search again."""
    from ember_ml.training.tuning.report import write_report

    page = write_report(folder)
    if as_json:
        output.remark(f"report: {page}")
        output.say(page.with_name("results.json").read_text(encoding="utf-8").rstrip("\n"))
    else:
        output.say(f"report: {page}")
