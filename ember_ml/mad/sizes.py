"""Parameter counts and state sizes of the compared architectures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml.backend import use_backend
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import make_model, state_of
from ember_ml.mad.scores import setting_of, task_of

MAX_RATIOS = {"parameters": 1.2, "state": 2.0}
"""Ratios of the largest to the smallest architecture above which a comparison is flagged."""


class SizesWarning(UserWarning):
    """Issued if the compared architectures differ in size by more than `MAX_RATIOS`."""


class SizesError(EmberError, ValueError):
    """Raised if architectures differ in size by more than the allowed factor."""


class Size(NamedTuple):
    """Size of an architecture on a task."""

    architecture: str
    task: str
    setting: str
    """The task's config without the seed, as JSON."""
    parameters: int
    state: int
    """Size of the fixed state; see `ember_ml.mad.run.state_of`."""
    state_per_token: int
    """Size of the state that grows with each token."""


def sizes_of(runs: Iterable[RunConfig]) -> list[Size]:
    """Return the size of every architecture in every setting of every task.

    Args:
        runs: Runs of a sweep.

    Example:
        >>> from ember_ml.mad import Sweep, sizes_of
        >>> sweep = Sweep(["mamba+swiglu", "attention+swiglu"], "runs/mad", tasks=["compression"])
        >>> [(size.parameters, size.state, size.state_per_token) for size in sizes_of(sweep.runs)]
        [(134544, 1792, 0), (111760, 0, 256)]
    """
    distinct = {(run.architecture, setting_of(run)): run for run in runs}
    with use_backend("numpy"):  # sizes do not depend on the backend
        return [_size(run) for run in distinct.values()]


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


def by_setting(sizes: Iterable[Size]) -> list[list[Size]]:
    """Group sizes by setting; only sizes of one setting are comparable."""
    groups: dict[str, list[Size]] = {}
    for size in sizes:
        groups.setdefault(size.setting, []).append(size)
    return list(groups.values())


class Spread(NamedTuple):
    """Smallest and largest architecture on a task."""

    smallest: Size
    largest: Size
    ratio: float


def spread(sizes: Sequence[Size], what: str) -> Spread | None:
    """Return the smallest and the largest of some architectures.

    Args:
        sizes: Sizes in one setting.
        what: "parameters" or "state". As in MAD, only fixed states are compared.

    Returns:
        The spread, or None if fewer than two sizes are comparable.
    """
    if what == "state":
        sizes = [size for size in sizes if not size.state_per_token]
    if len(sizes) < 2:
        return None
    ordered = sorted(sizes, key=lambda size: getattr(size, what))
    low, high = (getattr(ordered[at], what) for at in (0, -1))
    return Spread(ordered[0], ordered[-1], max(high, 1) / max(low, 1))


def size_warnings(sizes: Iterable[Size]) -> list[str]:
    """Return a sentence for each kind of size in which architectures differ too much.

    Args:
        sizes: Sizes of the architectures.
    """
    groups, sentences = by_setting(sizes), []
    for what, limit in MAX_RATIOS.items():
        pairs = [pair for group in groups if (pair := spread(group, what))]
        worst = max(pairs, key=lambda pair: pair.ratio, default=None)
        if worst is not None and worst.ratio > limit:
            name = {"parameters": "parameter counts", "state": "fixed states"}[what]
            sentences.append(
                f"unequal sizes: the {name} differ by a factor of up to {worst.ratio:.2f} (on "
                f"{worst.smallest.task}, {_side(worst.smallest, what)} and "
                f"{_side(worst.largest, what)}); a larger model may score better due to its size"
            )
    return sentences


def _side(size: Size, what: str) -> str:
    return f"{getattr(size, what):,} in {size.architecture}"


def check_sizes(found: Iterable[Size], **factors: float | None) -> None:
    """Raise a `SizesError` if architectures differ by more than a factor on a task.

    Args:
        found: Sizes of the architectures.
        factors: `parameters` and `state`: maximum ratio of the largest to the smallest.
    """
    groups = by_setting(found)
    for what, factor in factors.items():
        if factor is None:
            continue
        if factor < 1:
            raise ArgumentError(f"check_sizes: {what} must be 1 or more, not {factor}")
        for group in groups:
            _check_spread(spread(group, what), what, factor)


def _check_spread(pair: Spread | None, what: str, factor: float) -> None:
    if pair is None or pair.ratio <= factor:
        return
    low, high = getattr(pair.smallest, what), getattr(pair.largest, what)
    raise SizesError(
        f"{pair.smallest.task}: {what} range from {low:,} ({pair.smallest.architecture}) to "
        f"{high:,} ({pair.largest.architecture}), a factor of {pair.ratio:.2f}; at most "
        f"{factor:g} is allowed. Change the sizes of layers, for example mamba[d_state=8]"
    )
