"""What an optimizer does to its parameters, as arithmetic on lists of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Arrays: TypeAlias = Sequence[Any]
State: TypeAlias = dict[str, Any]
"""Slot -> a list of arrays, one for each parameter."""
Options: TypeAlias = Mapping[str, Any]
Shape: TypeAlias = tuple[int, ...]


class Slot(NamedTuple):
    """An array that is kept for a parameter from step to step."""

    shape: Shape
    fill: float | None = 0.0
    """What it is filled with at first; None: the parameter's value."""


class Rule:
    """How parameters change by their gradients: the maths of an optimizer, once for all backends.

    Attributes:
        name: what a backend's fused kernel of the same arithmetic is called.
    """

    name: str = ""

    def read(self, options: Options) -> Options:
        """Of the optimizer's options, those of this rule."""
        return options

    def slots(self, shape: Shape, options: Options) -> dict[str, Slot]:
        """What is kept for a parameter of a shape."""
        return {}

    def scalars(self, options: Options, rate: float, step: int) -> tuple[float, ...]:
        """The numbers of step 1, 2, 3 ... that `advance` takes."""
        raise NotImplementedError

    def advance(
        self,
        k: Any,
        params: Arrays,
        grads: Arrays,
        state: State,
        options: Options,
        scalars: Sequence[Any],
    ) -> tuple[Arrays, State]:
        """The new parameters and the new state.

        Args:
            k: the backend's arithmetic on lists of arrays, its `optimization.py`.
            params: the parameters; may be overwritten.
            grads: their gradients; may not.
            state: by slot; may be overwritten.
            options: what stays the same from step to step.
            scalars: what `scalars` gave, as numbers or, while a compiler traces, 0-d arrays.
        """
        raise NotImplementedError
