"""`ember mad`: compare architectures on synthetic tasks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import completion, mad_sizes, mad_tasks, output
from ember_ml.cli.settings import JsonOption, Settings, command

if TYPE_CHECKING:
    from rich.console import Console

    from ember_ml.mad import ProcessPool
    from ember_ml.mad.cluster import RayPool
    from ember_ml.mad.live import Progress
    from ember_ml.mad.scales import Scale
    from ember_ml.mad.scores import Cell
    from ember_ml.mad.sweep import Sweep
    from ember_ml.training.sweeps import Runner

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
        help="Run only this task, by its name or short name; repeatable.",
        autocompletion=completion.components("tasks"),
        show_default="all",
    ),
]
Width = Annotated[
    int | None,
    typer.Option(min=1, help="Width of the models.", show_default="the scale's"),
]
Steps = Annotated[
    int | None,
    typer.Option(min=1, help="Training steps of each run.", show_default="the task's"),
]
Rates = Annotated[
    list[float] | None,
    typer.Option(
        "--lr",
        help="Learning rate; repeatable. The best one on the validation split is used.",
        show_default="the scale's",
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
    width: Width = None,
    steps: Steps = None,
    lr: Rates = None,
    out: Out = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of parallel runs.", show_default="number of cores"),
    ] = None,
    ray: RayOption = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="First search for the learning rate and weight decay of each architecture on each "
            "task, with the same number of trials.",
        ),
    ] = False,
    budget: Annotated[
        int, typer.Option(min=1, help="Trials of each architecture on each task, with --tune.")
    ] = 8,
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
    changes = {"width": width, "steps": steps, "lr": tuple(lr or ()) or None}
    _check_tuning(tune, lr)
    tuned = [f"tune{budget}"] if tune else []
    names = ["mad", scale, *_change_names(changes), *tuned, get_backend(), *_plugin_names(settings)]
    sweep = Sweep(
        _architectures(architectures, name),
        out or Path("runs", "-".join(names)),
        scale=_changed(scale, changes),
        tasks=task or (),
        seeds=range(first, first + seeds),
        same_parameters=same_parameters,
        same_state=same_state,
        tune=budget if tune else None,
    )
    console = output.console(to_errors=as_json)
    sweep.open()
    pool = _pool(sweep, workers, ray, settings.device)
    try:
        _tune(sweep, pool.runner, console)
    except KeyboardInterrupt:
        _report_interrupt(sweep)
        raise typer.Exit(130) from None
    remaining = sweep.remaining()
    done = len(sweep.runs) - len(remaining)
    if done:
        console.print(f"{done} of {len(sweep.runs)} runs are done already in {sweep.store.path}")
    resumed = sum(map(sweep.store.has_checkpoint, remaining))
    if resumed:
        console.print(f"{resumed} of {len(remaining)} runs continue from their checkpoints")
    try:
        progress = watch(sweep, pool, console)
    except KeyboardInterrupt:
        _report_interrupt(sweep)
        raise typer.Exit(130) from None
    _finish(sweep, progress, as_json)


def _check_tuning(tune: bool, lr: list[float] | None) -> None:
    from ember_ml._core.errors import ArgumentError

    if tune and lr:
        raise ArgumentError("pass --tune or --lr, not both")


def _tune(sweep: Sweep, runner: Runner, console: Console) -> None:
    """Search for the hyperparameters of each architecture, and print them."""
    if sweep.tuning is None:
        return
    from ember_ml.mad.tuning_live import TuningProgress
    from ember_ml.training.sweeps.live import show

    if not sweep.tuning.is_complete():
        show(TuningProgress(sweep.tuning), sweep.tune(runner), console)


def _changed(scale: str, changes: Mapping[str, Any]) -> Scale:
    """Return a scale with the fields that options change."""
    from ember_ml.mad.scales import get_scale

    fields = {"width": "hidden_size", "steps": "steps", "lr": "learning_rates"}
    given = {fields[name]: value for name, value in changes.items() if value is not None}
    return get_scale(scale)._replace(**given)


def _change_names(changes: Mapping[str, Any]) -> list[str]:
    """Return the changed values, which the default folder is named by."""
    return [
        name + "-".join(f"{part:g}" for part in (value if isinstance(value, tuple) else [value]))
        for name, value in changes.items()
        if value is not None
    ]


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


def _pool(
    sweep: Sweep, workers: int | None, ray: str | None, device: str | None
) -> ProcessPool | RayPool:
    if ray is not None:
        from ember_ml.mad.cluster import RayPool

        address = None if ray == "local" else ray
        return RayPool(address, sweep.backend, device, checkpoints=sweep.store.checkpoints)
    from ember_ml.mad import ProcessPool

    return ProcessPool(workers, sweep.backend, device, checkpoints=sweep.store.checkpoints)


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
    from ember_ml.mad import cells, standings

    scores = cells(progress.done.values())
    places = standings(scores)
    grouped = {
        each.name: [cell for cell in scores if cell.architecture == each.name]
        for each in sweep.architectures
    }
    return {
        "path": str(sweep.store.path),
        "scale": sweep.scale.name,
        "settings": sweep.scale.settings(),
        "warnings": sweep.size_warnings,
        "notes": progress.notes(),
        "backend": sweep.backend,
        "tuning": _tuned(sweep),
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
        "ranking": [[each.architecture, each.score.mean] for each in places],
        "standings": [{**each._asdict(), "score": each.score._asdict()} for each in places],
    }


def _tuned(sweep: Sweep) -> dict[str, object] | None:
    """Return the budget of the tuning and the hyperparameters; None without tuning."""
    if sweep.tuning is None:
        return None
    rates: dict[str, dict[str, object]] = {each.name: {} for each in sweep.architectures}
    for (name, task), each in sweep.tuning.rates().items():
        rates[name][task] = each._asdict()
    return {"budget": sweep.tuning.budget, "rates": rates}


def _scores(cell: Cell) -> dict[str, float | tuple[float, float]]:
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
    width: Width = None,
    as_json: JsonOption = False,
) -> None:
    """Show parameter counts and state sizes of architectures, relative to the smallest.

    The state is the number of values a model keeps to continue a sequence; long filters count by
    their order. Attention without a window stores values for each token instead.
    """
    from ember_ml.mad import Sweep

    changed = _changed(scale, {"width": width})
    sweep = Sweep(_architectures(architectures, name), "unused", scale=changed, tasks=task or ())
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
