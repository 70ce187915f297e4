"""Options of the profile of a training run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ember_ml._core.errors import ArgumentTypeError
from ember_ml.data.errors import check_integer

FOLDER = "profile"
"""Default folder of the report."""


@dataclass(frozen=True)
class ProfileOptions:
    """Steps of a training run to profile, and where to write the report.

    Args:
        steps: Number of steps to time without the measurement of calls, and again with it.
        warmup: Number of steps before them, which are slower than later ones.
        out: Folder of the report; None: no report is written.
        overwrite: Whether to replace files in the folder that are not parts of a profile.
        memory: Whether to record the memory of one more step.

    Example:
        >>> from ember_ml.training.profiling import ProfileOptions
        >>> ProfileOptions(steps=3).total
        11
    """

    steps: int = 5
    warmup: int = 3
    out: str | os.PathLike[str] | None = FOLDER
    overwrite: bool = False
    memory: bool = True

    def __post_init__(self) -> None:
        check_integer("ProfileOptions", "steps", self.steps, least=1)
        check_integer("ProfileOptions", "warmup", self.warmup, least=0)
        for name in ("overwrite", "memory"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ArgumentTypeError(
                    f"ProfileOptions: {name} must be True or False, not {value!r:.60}"
                )
        if not (self.out is None or isinstance(self.out, (str, os.PathLike))):
            raise ArgumentTypeError(
                f"ProfileOptions: out must be a folder or None, not {self.out!r:.60}"
            )

    @property
    def total(self) -> int:
        """Number of steps until the profile is complete."""
        return self.warmup + 2 * self.steps + 1 + self.memory

    @property
    def folder(self) -> Path | None:
        """Folder of the report."""
        return None if self.out is None else Path(self.out)


ProfileLike: TypeAlias = bool | str | os.PathLike[str] | ProfileOptions


def options_of(value: ProfileLike) -> ProfileOptions:
    """Return the options of the argument `profile` of a trainer.

    Args:
        value: True, a folder or options.
    """
    if value is True:
        return ProfileOptions()
    if isinstance(value, ProfileOptions):
        return value
    if isinstance(value, (str, os.PathLike)):
        return ProfileOptions(out=value)
    raise ArgumentTypeError(
        f"Trainer: profile must be True, a folder or ProfileOptions, not {value!r:.60}"
    )
