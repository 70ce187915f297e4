"""Sequence modules: a parallel `forward` for training and a recurrent `step` for generation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.nn._inputs import as_tensors
from ember_ml.nn.module import Module

State: TypeAlias = Any
"""The recurrent state of a sequence: a pytree of tensors whose first axis is the batch."""


class SequenceModule(Module):
    """Module that maps sequences, (batch, time, features), and mixes their positions.

    `forward` maps the whole sequence in parallel, for training. `step` maps one position, given
    the state, for generation in constant memory. Both compute the same function.

    Subclasses define `forward`, and `initial_state` and `step` where a recurrent form exists.
    """

    is_causal: bool = True
    """Whether outputs do not depend on later inputs."""
    uses_timespans: bool = False
    """Whether `forward` and `step` take the time between positions."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of all positions.

        Args:
            x: Tensor of shape (batch, time, features).
            mask: Padding mask of shape (batch, time), False at padding. No other position sees
                the padding.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_tensors(vars(cls)["step"])  # type: ignore[method-assign]

    def initial_state(self, batch: int) -> State:
        """Return the state before the first position.

        Args:
            batch: Batch size.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form")

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output at one position, and the next state.

        Args:
            x: Tensor of shape (batch, features).
            state: The result of `initial_state` or of the last step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form")


def _with_tensors(step: Callable[..., tuple[Tensor, State]]) -> Callable[..., Any]:
    """Return a `step` that takes arrays of other frameworks, as calling a module does."""

    @functools.wraps(step)
    def call(self: SequenceModule, *args: Any, **options: Any) -> tuple[Tensor, State]:
        if args and not isinstance(args[0], EmberTensor):
            args = (*as_tensors(self, args[:1]), *args[1:])
        return step(self, *args, **options)

    return call


def all_causal(modules: Iterable[Module]) -> bool:
    """Return whether all sequence modules are causal."""
    return all(module.is_causal for module in modules if isinstance(module, SequenceModule))


def any_uses_timespans(modules: Iterable[Module]) -> bool:
    """Return whether any sequence module uses `timespans`."""
    return any(module.uses_timespans for module in modules if isinstance(module, SequenceModule))


def run(
    module: Module, x: Tensor, mask: Tensor | None = None, timespans: TensorLike | None = None
) -> Tensor:
    """Return a module's output for a sequence.

    Args:
        module: Any module.
        x: The sequence.
        mask: Padding mask, passed to sequence modules only.
        timespans: Time between positions, passed to modules that use it only.
    """
    if not isinstance(module, SequenceModule):
        output: Tensor = module(x)
        return output
    if timespans is None or not module.uses_timespans:
        return module(x, mask)
    return module(x, mask, timespans)  # type: ignore[call-arg]


def run_all(
    modules: Iterable[Module],
    x: Tensor,
    mask: Tensor | None = None,
    timespans: TensorLike | None = None,
) -> Tensor:
    """Return the output of modules in sequence; the arguments are those of `run`."""
    for module in modules:
        x = run(module, x, mask, timespans)
    return x


def initial_state(module: Module, batch: int) -> State:
    """Return a module's state before the first position; () if it is not a sequence module."""
    return module.initial_state(batch) if isinstance(module, SequenceModule) else ()


def initial_states(modules: Iterable[Module], batch: int) -> State:
    """Return the states of modules before the first position, as a tuple."""
    return tuple(initial_state(module, batch) for module in modules)


def step(
    module: Module, x: Tensor, state: State, timespan: TensorLike | None = None
) -> tuple[Tensor, State]:
    """Return a module's output at one position, and its next state."""
    if not isinstance(module, SequenceModule):
        return module(x), state
    if timespan is None or not module.uses_timespans:
        return module.step(x, state)
    return module.step(x, state, timespan)  # type: ignore[call-arg]


def step_all(
    modules: Iterable[Module], x: Tensor, state: State, timespan: TensorLike | None = None
) -> tuple[Tensor, State]:
    """Return the output of modules in sequence at one position, and their next states."""
    next_states = []
    for module, module_state in zip(modules, state, strict=True):
        x, next_state = step(module, x, module_state, timespan)
        next_states.append(next_state)
    return x, tuple(next_states)
