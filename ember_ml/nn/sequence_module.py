"""The two forms of what maps sequences: all positions at once, and one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.nn.module import Module

State = Any
"""What a sequence leaves behind for its continuation: a nest of tensors, the batch axis first."""


class SequenceModule(Module):
    """A module that maps sequences, (batch, time, features) in and out, and mixes their positions.

    `forward` takes the whole sequence, for training; `step` takes one position and the state, for
    generation in constant memory. Both give the same.

    Subclasses write `forward`, and `initial_state` and `step` where the maths has them.
    """

    is_causal: bool = True
    """Whether an output depends on no later input."""
    uses_timespans: bool = False
    """Whether `forward` and `step` take the time that passed between positions."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mapped.

        Args:
            x: (batch, time, features).
            mask: (batch, time), False where there is padding, which no other position sees.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def initial_state(self, batch: int) -> State:
        """The state before the first position."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, (batch, features), and the state after it."""
        raise NotImplementedError(f"{type(self).__name__} has no form that goes step by step")


def all_causal(modules: Iterable[Module]) -> bool:
    """Whether none of them looks ahead."""
    return all(module.is_causal for module in modules if isinstance(module, SequenceModule))


def any_uses_timespans(modules: Iterable[Module]) -> bool:
    """Whether one of them minds the time between positions."""
    return any(module.uses_timespans for module in modules if isinstance(module, SequenceModule))


def run(module: Module, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
    """A sequence through any module; only one that mixes positions is told of the mask and time."""
    if not isinstance(module, SequenceModule):
        return module(x)
    if timespans is None or not module.uses_timespans:
        return module(x, mask)
    return module(x, mask, timespans)


def run_all(
    modules: Iterable[Module], x: Any, mask: Tensor | None = None, timespans: Any = None
) -> Any:
    """A sequence through modules one after the other."""
    for module in modules:
        x = run(module, x, mask, timespans)
    return x


def initial_states(modules: Iterable[Module], batch: int) -> State:
    """Their states before the first position."""
    return tuple(initial_state(module, batch) for module in modules)


def step_all(
    modules: Iterable[Module], x: Tensor, state: State, timespan: Any = None
) -> tuple[Tensor, State]:
    """One position through modules one after the other, and their states after it."""
    after = []
    for module, before in zip(modules, state, strict=True):
        x, new = step(module, x, before, timespan)
        after.append(new)
    return x, tuple(after)


def initial_state(module: Module, batch: int) -> State:
    """The state of any module before the first position; () if it mixes no positions."""
    return module.initial_state(batch) if isinstance(module, SequenceModule) else ()


def step(module: Module, x: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
    """One position through any module, and the state after it."""
    if not isinstance(module, SequenceModule):
        return module(x), state
    if timespan is None or not module.uses_timespans:
        return module.step(x, state)
    return module.step(x, state, timespan)  # type: ignore[call-arg]
