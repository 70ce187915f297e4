"""The base class of learning rate schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeAlias, cast

from ember_ml._core.errors import ArgumentError
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import build

ScheduleLike: TypeAlias = Callable[[int], float]
"""Number of steps done -> factor on the learning rates."""


class Schedule:
    """Base class of learning rate schedules.

    `schedule(step)` returns the factor on the learning rates after `step` steps: 0 for the first.
    Subclasses define `factor_at`. A schedule with a length sets `total_steps`; if that is None,
    `Trainer.fit` sets it, and the schedule spans that call.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Linear(total_steps=4)
        >>> [schedule(step) for step in range(5)]
        [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    config: Config | None = None
    """The config it was built from."""
    total_steps: int | None
    """Number of steps; None if `fit` sets it. Schedules without a length do not have it."""
    final_factor: float = 0.0
    """Factor after `total_steps` steps."""
    _span: tuple[int, int] | None = None
    """First step, and number of steps, of the call of `fit` that set the length."""

    def __call__(self, step: int) -> float:
        """Return the factor on the learning rates.

        Args:
            step: Number of steps done, at least 0.
        """
        if step < 0:
            raise ArgumentError(f"{type(self).__name__}: step must be at least 0, not {step}")
        if self._span is not None:
            step = max(0, step - self._span[0])
        return float(self.factor_at(step))

    def needs_length(self) -> bool:
        """Return whether the schedule has a length that is not given."""
        return getattr(self, "total_steps", 0) is None

    @property
    def length(self) -> int:
        """Number of steps, given or set by `fit`."""
        length = self.total_steps if self._span is None else self._span[1]
        if length is None:
            raise ArgumentError(
                f"{type(self).__name__}: total_steps is unknown; pass it, or use Trainer.fit, "
                "which sets it to the number of steps of the call"
            )
        return length

    def set_span(self, start: int, end: int | None) -> None:
        """Set the length if it is not given; otherwise check that it is not too short.

        Args:
            start: Number of steps done when `fit` started.
            end: Number of steps done when it will end; None if that is unknown.
        """
        name = type(self).__name__
        if self.needs_length():
            if end is None:
                raise ArgumentError(
                    f"{name}: total_steps is not given, and the number of steps of this fit is "
                    "unknown; pass total_steps, or steps= to fit"
                )
            self._span = start, max(1, end - start)
            self.check_length(self._span[1])
            return
        given = getattr(self, "total_steps", None)
        if given is not None and end is not None and end > given and not self.final_factor:
            raise ArgumentError(
                f"{name}: the learning rate is 0 after total_steps={given}, but fit ends at step "
                f"{end}; leave total_steps out to use the length of fit, or set final_factor"
            )

    def check_length(self, length: int) -> None:
        """Raise an ArgumentError if the length is not valid; by default, every length is."""

    def factor_at(self, step: int) -> float:
        """Return the factor after `step` steps."""
        raise NotImplementedError

    def observe(self, value: float) -> None:
        """Receive a validation loss after an epoch; most schedules ignore it."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data; empty for most schedules."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state that `state_dict` returned."""
        return self

    def __repr__(self) -> str:
        given = self.config.to_dict() if self.config is not None else {}
        inside = ", ".join(f"{name}={value!r}" for name, value in given.items() if name != "type")
        return f"{type(self).__name__}({inside})"


def get(schedule: ComponentLike) -> ScheduleLike:
    """Return the schedule described by a name, a config, {"type": ...} or a callable.

    Args:
        schedule: Description of the schedule; a callable is returned as it is.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedules.get({"type": "warmup", "warmup_steps": 4})(1)
        0.25
    """
    return cast(ScheduleLike, build("schedules", schedule))


def line(start: float, end: float, share: float) -> float:
    """Return the linear interpolation between two values."""
    return start + (end - start) * share
