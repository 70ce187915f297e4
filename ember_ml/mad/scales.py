"""Scales of a comparison, from minutes on a laptop to MAD's full protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture, code_of
from ember_ml.mad.tasks import Task
from ember_ml.registry import available, get
from ember_ml.registry.base import close_matches

EPOCHS = 200
"""Training epochs of a run whose scale does not set a number of steps."""
RATES = (1e-4, 5e-4, 1e-3)
DECAYS = (0.0, 0.1)


class Setting(NamedTuple):
    """A task at one difficulty, with the number of training steps."""

    task: Config
    """Config of the task."""
    steps: int
    variable: str = ""
    """Field that makes it harder than the default; empty for the default setting."""


class Rates(NamedTuple):
    """Hyperparameters of a run."""

    learning_rate: float
    weight_decay: float


class Scale(NamedTuple):
    """Sizes of models and training. The sizes of a task at a scale are in `Task.scales`."""

    name: str
    summary: str
    hidden_size: int
    batch_size: int
    evaluations: int
    """Number of evaluations on the validation split during a run."""
    learning_rates: tuple[float, ...]
    weight_decays: tuple[float, ...]
    harder: bool = False
    """Whether each task is run at all its difficulties."""
    steps: int | None = None
    """Number of training steps of every run. Default: the task's own number."""
    based_on: str = ""
    """Scale whose task sizes are used. Default: the one of the same name."""

    def settings(self) -> dict[str, Any]:
        """Return the fields that determine the results, as plain data."""
        fields = self._asdict()
        del fields["name"], fields["summary"]
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()
        }

    def grid(self) -> list[Rates]:
        """Return the hyperparameters that each architecture is run with."""
        return [Rates(rate, decay) for rate in self.learning_rates for decay in self.weight_decays]

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Scale:
        """Return the scale of a name whose `settings` are given."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in settings.items()
        }
        return cls(name=name, summary="", **fields)


SCALES = {
    scale.name: scale
    for scale in (
        Scale("tiny", "a few steps of each, to try the commands out", 16, 8, 2, (1e-2,), (0.0,)),
        Scale(
            "mini", "small models on small tasks: minutes on two cores", 64, 32, 10, (3e-3,), (0.0,)
        ),
        Scale(
            "base",
            "MAD's models on each task at its defaults, with MAD's grid of learning rates",
            *(128, 128, EPOCHS, RATES, DECAYS),
        ),
        Scale(
            "full",
            "MAD's full protocol: every difficulty, 396 runs per architecture",
            *(128, 128, EPOCHS, RATES, DECAYS),
            harder=True,
        ),
    )
}


def get_scale(name: str | Scale) -> Scale:
    """Return the scale of a name; a `Scale` is returned unchanged."""
    if isinstance(name, Scale):
        return name
    if name not in SCALES:
        hint = close_matches(name, SCALES) or f"; available: {', '.join(SCALES)}"
        raise ArgumentError(f"no scale named {name!r}{hint}")
    return SCALES[name]


def task_names(names: Iterable[str] = ()) -> list[str]:
    """Return the canonical names of the given tasks, or of all tasks if none is given."""
    names = [names] if isinstance(names, str) else list(names)
    entries = [get(full_name(name), "tasks") for name in names] or available("tasks")
    return list(dict.fromkeys(entry.bare for entry in entries))


def full_name(name: str) -> str:
    """Return the name of the task with a short name; other names are returned unchanged."""
    own = {known for entry in available("tasks") for known in (entry.name, *entry.aliases)}
    if name in own or f"tasks/{name}" in own:
        return name
    tasks = [
        entry.bare
        for entry in available("tasks")
        if getattr(entry.target, "short_name", "") == name
    ]
    return tasks[0] if len(tasks) == 1 else name


def task_class(name: str) -> type[Task]:
    """Return the class of a task."""
    target = get(name, "tasks").target
    if not (isinstance(target, type) and issubclass(target, Task)):
        raise ArgumentError(f"tasks/{name}: {target!r} is not a subclass of ember_ml.mad.Task")
    return target


def short_name(task: str) -> str:
    """Return the name of a task for a narrow table column."""
    return task_class(task).short_name or task


def settings(scale: Scale, task: str) -> list[Setting]:
    """Return a task's settings at a scale: the default one, and the harder ones if it has them."""
    cls, config_cls = task_class(task), get(task, "tasks").config
    sizes = dict(cls.scales.get(scale.based_on or scale.name, {}))
    steps = scale.steps or sizes.pop("steps", None)
    sizes.pop("steps", None)

    def setting(variable: str = "", **values: float) -> Setting:
        config = config_cls(**{**sizes, **values})
        steps_per_epoch = -(-config.to_dict()["num_train"] // scale.batch_size)
        return Setting(config, steps or EPOCHS * steps_per_epoch, variable)

    harder = cls.harder if scale.harder else {}
    return [
        setting(),
        *(setting(name, **{name: value}) for name, values in harder.items() for value in values),
    ]


def _with_seed(task: Config, seed: int) -> Config:
    return task.override(seed=seed) if "seed" in type(task).model_fields else task


def make_runs(
    scale: Scale,
    architectures: Sequence[Architecture],
    tasks: Iterable[str] = (),
    seeds: Sequence[int] = (0,),
    tuned: Mapping[tuple[str, str], Rates] | None = None,
) -> list[RunConfig]:
    """Return all runs of a comparison, ordered so that early results cover every task.

    Args:
        scale: Sizes of models and training.
        architectures: Architectures to compare.
        tasks: Names of the tasks; all if empty.
        seeds: Seeds, one run for each.
        tuned: Learning rate and weight decay by architecture and task, instead of those of the
            scale.
    """
    settings_of = {task: settings(scale, task) for task in task_names(tasks)}
    code = {
        (architecture.name, task): code_of(architecture.layers, task_settings[0].task)
        for task, task_settings in settings_of.items()
        for architecture in architectures
    }
    return [
        RunConfig(
            architecture=architecture.name,
            layers=architecture.layers,
            task=_with_seed(setting.task, seed),
            hidden_size=scale.hidden_size,
            learning_rate=rates.learning_rate,
            weight_decay=rates.weight_decay,
            batch_size=scale.batch_size,
            steps=setting.steps,
            evaluate_every=max(1, setting.steps // scale.evaluations),
            seed=seed,
            code=code[architecture.name, task],
        )
        for seed in seeds
        for task, task_settings in settings_of.items()
        for setting in task_settings
        for grid_rates in scale.grid()
        for architecture in architectures
        for rates in [(tuned or {}).get((architecture.name, task), grid_rates)]
    ]
