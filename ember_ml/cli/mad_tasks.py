"""`ember mad tasks`: list the tasks with examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ember_ml.cli import completion, output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from rich.console import Console

    from ember_ml.mad import Task

COLORS = {
    "key": "cyan",
    "value": "yellow",
    "noise": "bright_black",
    "padding": "bright_black",
    "blank": "bright_black",
    "copy": "magenta",
    "answer here": "magenta",
    "end": "magenta",
}
"""Color of each token role; other roles are green."""

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TASK",
        help="Show only these tasks.",
        autocompletion=completion.components("tasks"),
        show_default="all",
    ),
]
Scale = Annotated[
    str, typer.Option(help="Scale of the examples.", autocompletion=completion.scales)
]


class Sample(NamedTuple):
    """One example, token by token."""

    inputs: list[int]
    targets: list[int | None]
    """None at positions without a target."""
    roles: list[str]


def tasks(
    settings: Settings,
    names: Names = None,
    sample: Annotated[int, typer.Option(min=0, help="Number of examples of each task.")] = 1,
    scale: Scale = "mini",
    as_json: JsonOption = False,
) -> None:
    """List the tasks, each with examples of its test split.

    Tokens are colored by their role. The target is printed below each token.
    """
    from ember_ml.mad.scales import get_scale, task_names
    from ember_ml.mad.scales import settings as settings_of
    from ember_ml.registry import get

    console = output.console()
    data = []
    for name in task_names(names or ()):
        entry = get(name, "tasks")
        setting = settings_of(get_scale(scale), name)[0]
        few = {"num_train": max(1, sample), "num_validation": 1, "num_test": max(1, sample)}
        few |= {} if settings.seed is None else {"seed": settings.seed}
        samples = samples_of(setting.task.override(**few).create(), sample)
        sizes = setting.task.to_dict()
        if as_json:
            data.append(
                {
                    "name": name,
                    "aliases": [alias.partition("/")[2] for alias in entry.aliases],
                    "summary": entry.summary,
                    "sizes": sizes,
                    "steps": setting.steps,
                    "samples": [each._asdict() for each in samples],
                }
            )
            continue
        text = ", ".join(f"{key} {value}" for key, value in sizes.items() if key != "type")
        console.print(f"[bold cyan]{name}[/]  {entry.summary}")
        console.print(f"  [dim]{text}, {setting.steps} steps[/]")
        _print_samples(samples, console)
    if as_json:
        output.write_json(data)


def samples_of(task: Task, count: int) -> list[Sample]:
    """Return the first `count` examples of the test split."""
    inputs, targets = task.arrays("test")
    return [
        Sample(
            (tokens := inputs[at].tolist()),
            [None if target < 0 else target for target in targets[at].tolist()],
            task.roles_of(tokens),
        )
        for at in range(count)
    ]


def _color(role: str) -> str:
    return COLORS.get(role, "green")


def _print_samples(samples: list[Sample], console: Console) -> None:
    """Print the tokens with the targets below, and a legend of the roles."""
    for sample in samples:
        _print_sample(sample, console)
    roles = dict.fromkeys(role for sample in samples for role in sample.roles)
    if roles:
        console.print("  " + "  ".join(f"[{_color(role)}]{role}[/]" for role in roles))
    console.print()


def _print_sample(sample: Sample, console: Console) -> None:
    from rich.text import Text

    tokens = [token for token in (*sample.inputs, *sample.targets) if token is not None]
    width = 1 + max(len(str(token)) for token in tokens)
    per_line = max(1, (min(console.width, 120) - 10) // width)
    for start in range(0, len(sample.inputs), per_line):
        above, below = Text("  input  "), Text("  target ", style="dim")
        columns = list(zip(*sample, strict=True))[start : start + per_line]
        for token, target, role in columns:
            above.append(f"{token:>{width}}", style=_color(role))
            text = "." if target is None else str(target)
            below.append(f"{text:>{width}}", style="dim" if target is None else "bold not dim")
        console.print(above)
        console.print(below)
