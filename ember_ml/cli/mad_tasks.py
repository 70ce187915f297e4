"""`ember mad tasks`: the tasks, with examples to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ember_ml.cli import completion, output
from ember_ml.cli.roles import COLORS, roles_of
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.mad import Task

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TASK",
        help="Only these.",
        autocompletion=completion.components("tasks"),
        show_default="all",
    ),
]
Scale = Annotated[
    str, typer.Option(help="The sizes of the examples.", autocompletion=completion.scales)
]


class Sample(NamedTuple):
    """An example, token by token."""

    inputs: list[int]
    targets: list[int | None]
    """None where nothing is to be said."""
    roles: list[str]


def tasks(
    settings: Settings,
    names: Names = None,
    sample: Annotated[int, typer.Option(min=0, help="Examples to show of each.")] = 1,
    scale: Scale = "mini",
    as_json: JsonOption = False,
) -> None:
    """The tasks, each with an example of its test split.

    Tokens are coloured by what they are. Below each stands the token that is to be said there.
    """
    from ember_ml.mad.scales import get_scale, task_names

    found = [
        _Shown(name, get_scale(scale), sample, settings.seed) for name in task_names(names or ())
    ]
    if as_json:
        output.write_json([each.as_data() for each in found])
        return
    console = output.console()
    for each in found:
        each.show(console)


class _Shown:
    """A task in the sizes of a scale, and some of its examples."""

    def __init__(self, name: str, scale: Any, samples: int, seed: int | None) -> None:
        from ember_ml.mad.scales import settings
        from ember_ml.registry import get

        self.entry = get(name, "tasks")
        setting = settings(scale, name)[0]
        self.name, self.sizes, self.steps = name, setting.task, setting.steps
        few = {"num_train": max(1, samples), "num_validation": 1, "num_test": max(1, samples)}
        few |= {} if seed is None else {"seed": seed}
        self.samples = samples_of(setting.task.override(**few).create(), samples)

    def as_data(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "name": self.name,
            "aliases": [alias.partition("/")[2] for alias in self.entry.aliases],
            "summary": self.entry.summary,
            "sizes": self.sizes.to_dict(),
            "steps": self.steps,
            "samples": [sample._asdict() for sample in self.samples],
        }

    def show(self, console: Any) -> None:
        """For people."""
        plain = self.sizes.to_dict()
        sizes = ", ".join(f"{key} {value}" for key, value in plain.items() if key != "type")
        console.print(f"[bold cyan]{self.name}[/]  {self.entry.summary}")
        console.print(f"  [dim]{sizes}, {self.steps} steps[/]")
        for sample in self.samples:
            _draw(sample, console)
        used = dict.fromkeys(role for sample in self.samples for role in sample.roles)
        if used:
            console.print("  " + "  ".join(f"[{COLORS[role]}]{role}[/]" for role in used))
        console.print()


def samples_of(task: Task, count: int) -> list[Sample]:
    """The first examples of the test split."""
    inputs, targets = task.arrays("test")
    return [
        Sample(
            (tokens := inputs[at].tolist()),
            [None if target < 0 else target for target in targets[at].tolist()],
            roles_of(task, tokens),
        )
        for at in range(count)
    ]


def _draw(sample: Sample, console: Any) -> None:
    """The tokens, and below them the targets, in as many rows as are needed."""
    from rich.text import Text

    known = [token for token in (*sample.inputs, *sample.targets) if token is not None]
    width = 1 + max(len(str(token)) for token in known)
    across = max(1, (min(console.width, 120) - 10) // width)
    for start in range(0, len(sample.inputs), across):
        above, below = Text("  input  "), Text("  target ", style="dim")
        rows = list(zip(*sample, strict=True))[start : start + across]
        for token, target, role in rows:
            above.append(f"{token:>{width}}", style=COLORS[role])
            said = "." if target is None else str(target)
            below.append(f"{said:>{width}}", style="dim" if target is None else "bold not dim")
        console.print(above)
        console.print(below)
