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
    population: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Train N models whose hyperparameters change during training, instead of trials.",
            show_default="trials",
        ),
    ] = None,
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
    done = search.open(budget, population)
    runner = _runner(search, workers, ray, settings.device)
    if population is not None:
        _train_population(search, population, runner, as_json)
        return
    if done:
        console.print(f"{done} of {budget} trials are over already in {folder}")
    try:
        search.run(runner, budget, console)
    except KeyboardInterrupt:
        _report_interrupt(search, budget)
        raise typer.Exit(130) from None
    _finish(search, as_json)


def _runner(search: Search, workers: int | None, ray: str | None, device: str | None) -> Runner:
    from ember_ml.training.sweeps import ProcessRunner, RayRunner

    if ray is not None:
        return RayRunner(None if ray == "local" else ray, search.backend, device, workers=workers)
    return ProcessRunner(workers, search.backend, device)


def _train_population(search: Search, size: int, runner: Runner, as_json: bool) -> None:
    """Train a population, and print the best member and its schedule."""
    population = search.population(size)
    for event in population.events(runner, search.segment_job):
        if event.kind in ("done", "failed"):
            segment = event.job.key
            score = population.finished[segment.generation, segment.member].score
            outcome = "failed" if score is None else f"{search.tune.metric} {score:.4g}"
            output.remark(f"step {segment.until_step}, member {segment.member}: {outcome}")
    best, schedule = population.best(), population.schedule()
    results = {
        "score": best.score,
        "member": best.segment.member,
        "checkpoint": best.segment.end,
        "interval": population.interval,
        "schedule": [dict(params) for params in schedule],
    }
    if as_json:
        output.write_json(results)
        return
    output.say(f"best: member {best.segment.member}, {search.tune.metric} {best.score:.4g}")
    for at, params in enumerate(schedule):
        words = "  ".join(f"{key} {value}" for key, value in params.items())
        output.say(f"  from step {at * population.interval}: {words}")
    output.say(f"checkpoint: {best.segment.end}")


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
