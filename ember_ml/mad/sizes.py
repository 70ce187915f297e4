"""Whether architectures are compared at the same size: of parameters, and of state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml.backend import use_backend
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import make_model, state_of
from ember_ml.mad.scores import setting_of, task_of


class SizesError(EmberError, ValueError):
    """Architectures that differ in size by more than was asked for."""


class Size(NamedTuple):
    """How large an architecture is on a task."""

    architecture: str
    task: str
    setting: str
    """The task with all its sizes."""
    parameters: int
    state: int
    """As `ember_ml.mad.run.state_of` counts it."""
    state_per_token: int
    """What it keeps of each token besides; such a state is not fixed."""


def sizes_of(runs: Iterable[RunConfig]) -> list[Size]:
    """The size of every architecture in every setting of every task.

    Example:
        >>> from ember_ml.mad import Sweep, sizes_of
        >>> sweep = Sweep(["mamba+swiglu", "attention+swiglu"], "runs/mad", tasks=["compression"])
        >>> [(size.parameters, size.state, size.state_per_token) for size in sizes_of(sweep.runs)]
        [(134544, 1792, 0), (111760, 0, 256)]
    """
    once = {(run.architecture, setting_of(run)): run for run in runs}
    with use_backend("numpy"):  # they are the same on every one
        return [_size(run) for run in once.values()]


def _size(run: RunConfig) -> Size:
    model = make_model(run)
    return Size(
        run.architecture,
        task_of(run),
        setting_of(run),
        model.num_parameters(),
        state_of(model),
        model.state_per_token,
    )


def by_setting(found: Iterable[Size]) -> list[list[Size]]:
    """The sizes that can be compared with each other."""
    groups: dict[str, list[Size]] = {}
    for size in found:
        groups.setdefault(size.setting, []).append(size)
    return list(groups.values())


class Spread(NamedTuple):
    """The smallest and the largest of a few architectures on a task."""

    smallest: Size
    largest: Size
    ratio: float


def spread(found: Sequence[Size], what: str) -> Spread | None:
    """How far apart architectures are in "parameters" or "state".

    Only fixed states are compared, as in MAD: one that grows with the sequence has no size.

    Returns:
        Nothing if fewer than two are to be compared.
    """
    if what == "state":
        found = [size for size in found if not size.state_per_token]
    if len(found) < 2:
        return None
    ordered = sorted(found, key=lambda size: getattr(size, what))
    low, high = (getattr(ordered[at], what) for at in (0, -1))
    return Spread(ordered[0], ordered[-1], max(high, 1) / max(low, 1))


def check_sizes(found: Iterable[Size], **factors: float | None) -> None:
    """Raise an error if architectures differ by more than a factor on one task.

    Args:
        found: the sizes.
        factors: "parameters" and "state": the largest may be so many times the smallest.
    """
    groups = by_setting(found)
    for what, factor in factors.items():
        if factor is None:
            continue
        if factor < 1:
            raise ArgumentError(f"a factor between sizes is 1 or more, not {factor} ({what})")
        for group in groups:
            _check(spread(group, what), what, factor)


def _check(found: Spread | None, what: str, factor: float) -> None:
    if found is None or found.ratio <= factor:
        return
    low, high = getattr(found.smallest, what), getattr(found.largest, what)
    raise SizesError(
        f"{found.smallest.task}: {what} from {low:,} ({found.smallest.architecture}) to {high:,} "
        f"({found.largest.architecture}), a factor of {found.ratio:.2f}, where at most {factor:g} "
        "was asked for; give layers other sizes, such as mamba[d_state=8]"
    )
