"""`ember mad`: compare architectures on synthetic tasks."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import completion, mad_sizes, mad_tasks, output
from ember_ml.cli.settings import JsonOption, Settings, command

if TYPE_CHECKING:
    from ember_ml.mad.live import Progress
    from ember_ml.mad.scores import Cell
    from ember_ml.mad.sweep import Pool, Sweep

app = typer.Typer(
    help="Compare architectures on small synthetic tasks (MAD).", no_args_is_help=True
)
Architectures = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARCH",
        help="Patterns of layers, such as attention+swiglu or mamba+swiglu.",
        autocompletion=completion.patterns,
        show_default=False,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name", metavar="NAME=PATTERN", help="A pattern with a name for the tables; repeatable."
    ),
]
ScaleOption = Annotated[
    str,
    typer.Option(
        help="Size of the comparison; see `ember mad scales`.", autocompletion=completion.scales
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        help="Run only this task; repeatable.",
        autocompletion=completion.components("tasks"),
        show_default="all",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of the sweep.", show_default="runs/mad-<scale>-<backend>"),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|auto|local",
        help="Run on a Ray cluster: at an address, the one this machine is part of, or a new one "
        "on this machine.",
    ),
]
SameParameters = Annotated[
    float | None,
    typer.Option(
        min=1.0,
        metavar="FACTOR",
        help="Reject architectures whose parameter counts differ by more, such as 1.1.",
        show_default="no limit",
    ),
]
SameState = Annotated[
    float | None,
    typer.Option(
        min=1.0,
        metavar="FACTOR",
        help="Reject architectures whose fixed states differ by more, such as 2.",
        show_default="no limit",
    ),
]


@command(app, "run")
def run(
    settings: Settings,
    architectures: Architectures = None,
    name: Names = None,
    scale: ScaleOption = "mini",
    task: Tasks = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, one run for each.")] = 1,
    out: Out = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parallel runs.", show_default="number of cores"),
    ] = None,
    ray: RayOption = None,
    same_parameters: SameParameters = None,
    same_state: SameState = None,
    as_json: JsonOption = False,
) -> None:
    """Train every architecture on every task, and write a report.

    Runs that the folder already has are skipped, so the same command continues an interrupted
    sweep. The exit code is 1 if runs failed.
    """
    from ember_ml.backend import get_backend
    from ember_ml.mad import Sweep
    from ember_ml.mad.live import watch

    first = settings.seed or 0
    sweep = Sweep(
        _architectures(architectures, name),
        out or Path("runs", "-".join(["mad", scale, get_backend(), *_plugin_names(settings)])),
        scale=scale,
        tasks=task or (),
        seeds=range(first, first + seeds),
        same_parameters=same_parameters,
        same_state=same_state,
    )
    console = output.console(to_errors=as_json)
    sweep.open()
    done = len(sweep.runs) - len(sweep.remaining())
    if done:
        console.print(f"{done} of {len(sweep.runs)} runs are done already in {sweep.store.path}")
    try:
        progress = watch(sweep, _pool(sweep, workers, ray, settings.device), console)
    except KeyboardInterrupt:
        _report_interrupt(sweep)
        raise typer.Exit(130) from None
    _finish(sweep, progress, as_json)


def _plugin_names(settings: Settings) -> list[str]:
    """Return the names of the plugins, which the default folder contains."""
    return [Path(name.removesuffix(".py")).name for name in settings.plugin or ()]


def _architectures(
    patterns: list[str] | None, named: list[str] | None
) -> list[str | tuple[str, str]]:
    return [*(patterns or ()), *(_parse_named(text) for text in named or ())]


def _parse_named(text: str) -> tuple[str, str]:
    from ember_ml._core.errors import ArgumentError

    name, equals, pattern = text.partition("=")
    if not (equals and name.strip() and pattern.strip()):
        raise ArgumentError(f"--name must be NAME=PATTERN, such as ours=hyena+swiglu, not {text!r}")
    return name.strip(), pattern.strip()


def _pool(sweep: Sweep, workers: int | None, ray: str | None, device: str | None) -> Pool:
    if ray is not None:
        from ember_ml.mad.cluster import RayPool

        return RayPool(None if ray == "local" else ray, sweep.backend, device)
    from ember_ml.mad import ProcessPool

    return ProcessPool(workers, sweep.backend, device)


def _report_interrupt(sweep: Sweep) -> None:
    done = len(sweep.runs) - len(sweep.remaining())
    output.remark(
        f"\nstopped: {done} of {len(sweep.runs)} runs are done, with results in "
        f"{sweep.store.path}; continue with: {shlex.join(['ember', *sys.argv[1:]])}"
    )


def _finish(sweep: Sweep, progress: Progress, as_json: bool) -> None:
    from ember_ml.mad.report import write_report

    page = write_report(sweep.store.path)
    for name, each in progress.failed.items():
        output.remark(f"failed: {name}: {_last_line(each.error)}")
    if as_json:
        output.write_json({**_outcome(sweep, progress), "report": str(page)})
    else:
        output.say(f"report: {page}")
    if progress.failed:
        raise typer.Exit(1)


def _last_line(error: str) -> str:
    return error.strip().rpartition("\n")[2]


def _outcome(sweep: Sweep, progress: Progress) -> dict[str, object]:
    from ember_ml.mad import cells
    from ember_ml.mad.scores import ranking

    scores = cells(progress.done.values())
    grouped = {
        each.name: [cell for cell in scores if cell.architecture == each.name]
        for each in sweep.architectures
    }
    return {
        "path": str(sweep.store.path),
        "scale": sweep.scale.name,
        "backend": sweep.backend,
        "runs": len(sweep.runs),
        "done": len(progress.done),
        "failed": {name: _last_line(each.error) for name, each in progress.failed.items()},
        "accuracy": {
            name: {cell.task: cell.accuracy.mean for cell in group}
            for name, group in grouped.items()
        },
        "scores": {
            name: {cell.task: _scores(cell) for cell in group} for name, group in grouped.items()
        },
        "ranking": [[name, mean.mean] for name, mean in ranking(scores)],
    }


def _scores(cell: Cell) -> dict[str, float | None]:
    return {
        "accuracy": cell.accuracy.mean,
        "interval": cell.accuracy.interval,
        "macro_accuracy": cell.macro_accuracy.mean,
        "macro_interval": cell.macro_accuracy.interval,
        "seeds": cell.accuracy.seeds,
    }


@command(app, "report")
def report(
    settings: Settings,
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep, finished or not.")],
    as_json: JsonOption = False,
) -> None:
    """Write the report of a sweep again."""
    from ember_ml.mad.report import write_report

    page = write_report(folder)
    if as_json:
        output.remark(f"report: {page}")
        output.say(page.with_name("results.json").read_text(encoding="utf-8").rstrip("\n"))
    else:
        output.say(f"report: {page}")


@command(app, "sizes")
def sizes(
    settings: Settings,
    architectures: Architectures = None,
    name: Names = None,
    scale: ScaleOption = "mini",
    task: Tasks = None,
    as_json: JsonOption = False,
) -> None:
    """Show parameter counts and state sizes of architectures, relative to the smallest.

    The state is the number of values a model keeps to continue a sequence; long filters count by
    their order. Attention without a window stores values for each token instead.
    """
    from ember_ml.mad import Sweep

    sweep = Sweep(_architectures(architectures, name), "unused", scale=scale, tasks=task or ())
    mad_sizes.show(sweep, as_json=as_json)


@command(app, "scales")
def scales(settings: Settings, as_json: JsonOption = False) -> None:
    """List the scales of a comparison."""
    from ember_ml.mad import SCALES, architecture
    from ember_ml.mad.scales import make_runs, task_class, task_names

    one = [architecture("attention+swiglu")]
    counts = {name: len(make_runs(scale, one)) for name, scale in SCALES.items()}
    if as_json:
        output.write_json(
            [
                {
                    **scale._asdict(),
                    "sizes": {task: task_class(task).scales.get(name, {}) for task in task_names()},
                    "runs_per_architecture": counts[name],
                }
                for name, scale in SCALES.items()
            ]
        )
        return
    rows = [
        (name, str(counts[name]), str(scale.hidden_size), scale.summary)
        for name, scale in SCALES.items()
    ]
    headers = "scale", "runs per architecture", "hidden size", "description"
    output.console().print(output.table(rows, *headers))


command(app, "tasks")(mad_tasks.tasks)
