"""Sequence modules: one function in three forms, for training, for prefill and for generation."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, overload

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRangeError,
    ShapeError,
)
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.nn._hooks import is_hooked
from ember_ml.nn._inputs import as_tensors
from ember_ml.nn.module import Module
from ember_ml.nn.states import State as State


class StatefulCall(Module):
    """Types of calls: they return a tensor, and with a state also the next state."""

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, x: Any, *args: Any, state: State, **options: Any
        ) -> tuple[Tensor, State]: ...
        @overload
        def __call__(self, x: Any, *args: Any, state: None = None, **options: Any) -> Tensor: ...
        def __call__(self, x: Any, *args: Any, state: State | None = None, **options: Any) -> Any:
            """Return the outputs; with a state, also the state after the last position."""


class SequenceModule(StatefulCall):
    """Module that maps sequences, (batch, time, features), and mixes their positions.

    It has three forms that compute the same function:

    - `module(x)` maps a whole sequence in parallel, for training.
    - `module(x, state=state)` maps the next part of a sequence in parallel, and returns the
      outputs and the state after it: for prompts, streams, and training on long sequences in
      parts. Gradients flow through the state.
    - `module.step(x, state)` maps one position, for generation.

    Subclasses define `forward`, and `initial_state` where a recurrent form exists. A subclass whose
    `forward` takes no `state` defines `step`; a sequence with a state is then mapped step by step.
    """

    is_causal: bool = True
    """Whether outputs do not depend on later inputs."""
    uses_timespans: bool = False
    """Whether `forward` and `step` take the time between positions."""

    def forward(self, x: Tensor, mask: Tensor | None = None, *, state: State | None = None) -> Any:
        """Return the outputs of all positions; with a state, also the state after the last one.

        Args:
            x: Tensor of shape (batch, time, features).
            mask: Padding mask of shape (batch, time), False at padding. No other position sees
                the padding. With a state, the padding of an example must come last; it does not
                change the state.
            state: State before the first position: the result of `initial_state`, or of an
                earlier call. Default: the start of the sequence.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_tensors(vars(cls)["step"])  # type: ignore[method-assign]
        if "forward_at" not in vars(cls) and not vars(cls).keys().isdisjoint(("forward", "mix")):
            cls.forward_at = SequenceModule.forward_at  # type: ignore[method-assign]
        forward = vars(cls).get("forward")
        if forward is not None and "state" not in inspect.signature(forward).parameters:
            cls.forward = _with_state(forward)  # type: ignore[method-assign]

    def forward_at(self, x: Tensor, at: Positions, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of some positions, (1, count, features), or (batch, 1, features).

        Layers that can leave out the other positions override it. `run_at` calls it. A class that
        defines `forward` or `mix` does not inherit it.

        Args:
            x: Tensor of shape (batch, time, features), not empty.
            at: The positions.
            mask: As in `forward`.
        """
        return take_positions(run(self, x, mask), at)

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
            state: The result of `initial_state`, of the last step or of a call with a state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no recurrent form")

    def unroll(
        self, x: Tensor, state: State | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Apply `step` to each position: the reference implementation of a call with a state.

        Args:
            x: Tensor of shape (batch, time, features).
            state: State before the first position. Default: the initial state.
            mask: Padding mask of shape (batch, time), False where the state does not change.

        Returns:
            The outputs, (batch, time, features), and the state after the last position.
        """
        state = self.initial_state(x.shape[0]) if state is None else state
        outputs = []
        for position in range(x.shape[1]):
            y, after = self.step(x[:, position], state)
            state = after if mask is None else hold(mask[:, position], after, state)
            outputs.append(y)
        return ops.stack(outputs, axis=1) if outputs else x, state

    def check_right_padded(self, mask: Tensor) -> None:
        """Raise an ArgumentError unless the padding of each example comes last.

        Args:
            mask: Padding mask of shape (batch, time), False at padding.
        """
        if mask.shape[1] < 2:
            return
        real = ops.astype(mask, bool_)
        gap = ops.any(ops.logical_and(real[:, 1:], ops.logical_not(real[:, :-1])))
        if runtime.LOADED[gap.backend].truth(gap.native):
            raise ArgumentError(
                f"{type(self).__name__}: with a state, the mask must be True for the real "
                "positions of an example and then False for its padding; move the padding to the "
                "end of each sequence"
            )


def check_batch(module: Module, batch: int, state: State) -> None:
    """Raise a ShapeError unless a state has the batch size of an input.

    Args:
        module: The module that the state belongs to.
        batch: Batch size of the input.
        state: State before it.
    """
    tensors = (leaf for leaf in tree.leaves_of(state) if isinstance(leaf, EmberTensor))
    first = next(tensors, None)  # other tensors of a state need not have a batch
    if first is not None and first.shape[:1] != (batch,):
        raise ShapeError(
            f"{type(module).__name__}: the input has a batch of {batch}, but the state has the "
            f"shape {first.shape}; pass initial_state({batch}), or the state of the same batch"
        )


def check_state(module: Module, state: State, expected: list[tuple[int, ...]]) -> None:
    """Raise a ShapeError unless the tensors of a state have the expected shapes.

    Args:
        module: The module that the state belongs to.
        state: State before an input.
        expected: Shapes of its tensors.
    """
    leaves = tree.leaves_of(state)
    shapes = [x.shape if isinstance(x, EmberTensor) else type(x).__name__ for x in leaves]
    if shapes != expected:
        raise ShapeError(
            f"{type(module).__name__}: expected a state with the shapes {expected}, got {shapes}"
        )


def hold(real: Tensor, new: State, old: State) -> State:
    """Return the new state, and the old one for examples at padding.

    Args:
        real: (batch,), False at padding.
        new: State after the position.
        old: State before the position.
    """

    def choose(after: Tensor, before: Tensor) -> Tensor:
        if after.shape != before.shape:
            raise ShapeError(
                f"a state that grows, here from {before.shape} to {after.shape}, cannot be held at "
                "padding; pass the sequence without a mask"
            )
        return ops.where(ops.reshape(real, (-1, *[1] * (after.ndim - 1))), after, before)

    return tree.map_leaves(choose, new, old)


def _with_state(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `forward` that also takes a state, with which it applies `step` to each position."""

    @functools.wraps(forward)
    def call(self: SequenceModule, *args: Any, state: State | None = None, **options: Any) -> Any:
        if state is None:
            return forward(self, *args, **options)
        x, *rest = args
        return self.unroll(x, state, *rest, **options)

    return call


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
    return module(x, mask, timespans)


def run_at(
    module: Module,
    x: Tensor,
    at: Positions,
    mask: Tensor | None = None,
    timespans: TensorLike | None = None,
) -> Tensor:
    """Return a module's outputs at some positions, (1, count, features), or (batch, 1, features).

    Args:
        module: Any module. One with hooks or `timespans` computes the outputs of all positions.
        x: The sequence.
        at: The positions.
        mask: Padding mask, passed to sequence modules only.
        timespans: Time between positions, passed to modules that use it only.
    """
    if isinstance(module, SequenceModule) and x.size:
        hooks = module._hooks
        is_plain = (hooks is None or hooks.only_observes) and "forward" not in vars(module)
        if is_plain and not is_hooked(module) and (timespans is None or not module.uses_timespans):
            if hooks is None or hooks.observer is None:
                return module.forward_at(x, at, mask)
            return hooks.observer(module, lambda: module.forward_at(x, at, mask))
    return take_positions(run(module, x, mask, timespans), at)


def extend(
    module: Module,
    x: Tensor,
    state: State,
    mask: Tensor | None = None,
    timespans: TensorLike | None = None,
) -> tuple[Tensor, State]:
    """Return a module's output for the next part of a sequence, and the state after it.

    Args:
        module: Any module; the state of one that is not a sequence module does not change.
        x: The next part of the sequence.
        state: State before it.
        mask: Padding mask, passed to sequence modules only.
        timespans: Time between positions, passed to modules that use it only.
    """
    if not isinstance(module, SequenceModule):
        return module(x), state
    if timespans is None or not module.uses_timespans:
        return module(x, mask, state=state)
    return module(x, mask, timespans, state=state)


def extend_all(
    modules: Iterable[Module],
    x: Tensor,
    state: State,
    mask: Tensor | None = None,
    timespans: TensorLike | None = None,
) -> tuple[Tensor, State]:
    """Return the output of modules in sequence, and their states; the arguments of `extend`."""
    next_states = []
    for module, module_state in _pairs(modules, state):
        x, next_state = extend(module, x, module_state, mask, timespans)
        next_states.append(next_state)
    return x, tuple(next_states)


def _pairs(modules: Iterable[Module], state: State) -> Iterable[tuple[Module, State]]:
    """Return modules with their states; raise a ShapeError unless there is one state for each."""
    modules = list(modules)
    if not isinstance(state, (tuple, list)) or len(state) != len(modules):
        names = ", ".join(type(module).__name__ for module in modules)
        number = len(state) if isinstance(state, (tuple, list)) else type(state).__name__
        raise ShapeError(
            f"expected a tuple of {len(modules)} states, one for each of {names}, got {number}"
        )
    return zip(modules, state, strict=True)


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


def run_all_at(
    modules: Sequence[Module],
    x: Tensor,
    at: Positions,
    mask: Tensor | None = None,
    timespans: TensorLike | None = None,
) -> Tensor:
    """Return the outputs of modules in sequence at some positions; the arguments of `run_at`."""
    mixing, tail = split_tail(modules)
    if not mixing:
        return run_all(tail, take_positions(x, at))
    x = run_all(mixing[:-1], x, mask, timespans)
    return run_all(tail, run_at(mixing[-1], x, at, mask, timespans))


def split_tail(modules: Sequence[Module]) -> tuple[Sequence[Module], Sequence[Module]]:
    """Return the modules up to the last one that mixes positions, and those after it.

    A module with hooks counts as one that mixes positions: hooks may read all of them.

    Args:
        modules: Modules in sequence.
    """
    count = len(modules)
    while count and modules[count - 1].is_position_wise and not is_hooked(modules[count - 1]):
        count -= 1
    return modules[:count], modules[count:]


Positions: TypeAlias = Tensor | int
"""Some positions of a sequence: indices example * time + position, of shape (count,), or one
position of every example, such as -1."""


def as_positions(at: object, x: Tensor) -> Positions:
    """Return positions of a sequence; raise an error if they are none.

    Args:
        at: An int, a vector of indices, or a tuple, range or list of them.
        x: Tensor of shape (batch, time, features).
    """
    if isinstance(at, (tuple, range, list)):
        at = convert_to_tensor(list(at), None if at else "int64", backend=x.backend)
    if isinstance(at, EmberTensor):
        if at.ndim != 1:
            raise ShapeError(
                "at must have the shape (count,), with indices example * time + position, or be an "
                f"int, not a tensor of the shape {at.shape}"
            )
        return at
    if isinstance(at, bool) or not isinstance(at, SupportsIndex):
        raise ArgumentTypeError(f"at must be an int or a tensor of indices, not {at!r:.60}")
    index, time = operator.index(at), x.shape[1]
    if not -time <= index < time:
        raise IndexOutOfRangeError(f"at: index {index} is out of range for {time} positions")
    return index


def take_positions(x: Tensor, at: Positions) -> Tensor:
    """Return some positions of a sequence, (1, count, features), or (batch, 1, features) for one.

    Args:
        x: Tensor of shape (batch, time, features).
        at: The positions.
    """
    if isinstance(at, int):
        return x[:, at][:, None]
    return ops.take(ops.reshape(x, (-1, x.shape[-1])), at, axis=0)[None]


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
    for module, module_state in _pairs(modules, state):
        x, next_state = step(module, x, module_state, timespan)
        next_states.append(next_state)
    return x, tuple(next_states)
