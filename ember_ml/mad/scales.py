"""How large a comparison is: from minutes on a laptop to MAD's whole protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.architecture import Architecture
from ember_ml.mad.code import code_of
from ember_ml.registry import available, get
from ember_ml.registry.base import close_matches

RATES = (1e-4, 5e-4, 1e-3)
DECAYS = (0.0, 0.1)


class Setting(NamedTuple):
    """A task of a certain difficulty, and for how long to train."""

    task: Config
    """With all its sizes."""
    steps: int
    variable: str = ""
    """What makes it harder than by default; nothing for the default itself."""


class Scale(NamedTuple):
    """Sizes of models, tasks and training."""

    name: str
    summary: str
    hidden_size: int
    batch_size: int
    evaluations: int
    """How often a run looks at the validation split."""
    learning_rates: tuple[float, ...]
    weight_decays: tuple[float, ...]
    sizes: dict[str, dict[str, Any]]
    """Of each task, what differs from its defaults; "steps" among them."""
    harder: bool = False
    """Whether each task comes in all its difficulties."""


EPOCHS = 200
_MINI = {"num_validation": 256}
_TINY = {"num_train": 32, "num_validation": 8, "num_test": 8, "steps": 4}
SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            "tiny",
            "a few steps of each, which tell nothing: for trying things out",
            hidden_size=16,
            batch_size=8,
            evaluations=2,
            learning_rates=(1e-2,),
            weight_decays=(0.0,),
            sizes={
                "in-context-recall": {"vocab_size": 8, "seq_len": 8, **_TINY},
                "noisy-in-context-recall": {
                    "vocab_size": 10,
                    "noise_vocab_size": 2,
                    "seq_len": 8,
                    **_TINY,
                },
                "fuzzy-in-context-recall": {"vocab_size": 8, "seq_len": 18, **_TINY},
                "memorization": {"vocab_size": 16, "seq_len": 8, **_TINY},
                "compression": {"vocab_size": 8, "seq_len": 8, **_TINY},
                "selective-copying": {
                    "vocab_size": 8,
                    "seq_len": 12,
                    "num_tokens_to_copy": 2,
                    **_TINY,
                },
            },
        ),
        Scale(
            "mini",
            "small models on small tasks: minutes on two cores",
            hidden_size=64,
            batch_size=32,
            evaluations=10,
            learning_rates=(3e-3,),
            weight_decays=(0.0,),
            sizes={
                "in-context-recall": {
                    "vocab_size": 16,
                    "seq_len": 32,
                    "train_on": "known",
                    "steps": 500,
                    **_MINI,
                },
                "noisy-in-context-recall": {
                    "vocab_size": 24,
                    "noise_vocab_size": 8,
                    "seq_len": 32,
                    "train_on": "known",
                    "steps": 500,
                    **_MINI,
                },
                "fuzzy-in-context-recall": {
                    "vocab_size": 10,
                    "seq_len": 48,
                    "key_size": 2,
                    "value_size": 2,
                    "train_on": "known",
                    "steps": 500,
                    **_MINI,
                },
                "memorization": {"vocab_size": 2048, "num_train": 1024, "steps": 150, **_MINI},
                "compression": {"seq_len": 16, "steps": 1000, **_MINI},
                "selective-copying": {
                    "seq_len": 32,
                    "num_tokens_to_copy": 8,
                    "steps": 500,
                    **_MINI,
                },
            },
        ),
        Scale(
            "base",
            "MAD's models on each task as it is by default, with its grid of learning rates",
            hidden_size=128,
            batch_size=128,
            evaluations=EPOCHS,
            learning_rates=RATES,
            weight_decays=DECAYS,
            sizes={},
        ),
        Scale(
            "full",
            "MAD's whole protocol: every difficulty, 396 runs an architecture",
            hidden_size=128,
            batch_size=128,
            evaluations=EPOCHS,
            learning_rates=RATES,
            weight_decays=DECAYS,
            sizes={},
            harder=True,
        ),
    )
}


def get_scale(name: str) -> Scale:
    """The scale of a name."""
    if name not in SCALES:
        hint = close_matches(name, SCALES) or f"; there are {', '.join(SCALES)}"
        raise ArgumentError(f"no scale named {name!r}{hint}")
    return SCALES[name]


def task_names(names: Iterable[str] = ()) -> list[str]:
    """The tasks of these names, in their usual spelling; all if none is named."""
    names = [names] if isinstance(names, str) else list(names)
    found = [get(name, "tasks").name for name in names]
    found = found or [entry.name for entry in available("tasks")]
    return list(dict.fromkeys(name.partition("/")[2] for name in found))


def settings(scale: Scale, task: str) -> list[Setting]:
    """A task in the sizes of a scale, and in its difficulties if the scale has them."""
    entry = get(task, "tasks")
    target: Any = entry.target
    sizes = dict(scale.sizes.get(task) or target.scales.get(scale.name, {}))
    steps = sizes.pop("steps", None)

    def setting(variable: str = "", **values: Any) -> Setting:
        config = entry.config(**{**sizes, **values})
        per_epoch = -(-config.num_train // scale.batch_size)
        return Setting(config, steps or EPOCHS * per_epoch, variable)

    found = [setting()]
    if scale.harder:
        found += [
            setting(name, **{name: value})
            for name, values in target.harder.items()
            for value in values
        ]
    return found


def _seeded(task: Config, seed: int) -> Config:
    """The task with examples of its own for each seed."""
    return task.override(seed=seed) if "seed" in type(task).model_fields else task


def make_runs(
    scale: Scale,
    architectures: Sequence[Architecture],
    tasks: Iterable[str] = (),
    seeds: Sequence[int] = (0,),
) -> list[RunConfig]:
    """All runs of a comparison, in the order in which they tell the most the soonest."""
    chosen = {task: settings(scale, task) for task in task_names(tasks)}
    code = {
        (each.name, task): code_of(each.layers, found[0].task)
        for task, found in chosen.items()
        for each in architectures
    }
    return [
        RunConfig(
            architecture=architecture.name,
            layers=architecture.layers,
            task=_seeded(setting.task, seed),
            hidden_size=scale.hidden_size,
            learning_rate=rate,
            weight_decay=decay,
            batch_size=scale.batch_size,
            steps=setting.steps,
            evaluate_every=max(1, setting.steps // scale.evaluations),
            seed=seed,
            code=code[architecture.name, task],
        )
        for seed in seeds
        for task, found in chosen.items()
        for setting in found
        for rate in scale.learning_rates
        for decay in scale.weight_decays
        for architecture in architectures
    ]
