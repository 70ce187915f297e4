"""Recurrent states: pytrees of tensors whose first axis is the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor, TensorLike

State: TypeAlias = Any
"""The recurrent state of a sequence: a pytree of tensors whose first axis is the batch."""


Nothing: TypeAlias = tuple[()]
"""An absent part of a state: a pytree without leaves."""


class StateNode:
    """Part of a state with a layout of its own, such as a KV cache.

    A subclass is a named tuple as well, so that a state remains a pytree.
    """

    def take_rows(self, indices: Tensor) -> Self:
        """Return the states of some examples of the batch; see `take_rows`."""
        raise NotImplementedError(f"take_rows: rows of {type(self).__name__} cannot be taken")

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the states of several batches as one; see `join`."""
        raise NotImplementedError(f"join: {cls.__name__} cannot be joined")

    def reserve(self) -> Self:
        """Return the state with room for further positions; see `reserve`."""
        return self

    def fix(self, capacity: int) -> StateNode:
        """Return the state in a form whose shapes do not change; see `fix`."""
        raise NotImplementedError(f"{type(self).__name__} has no form of constant shape")

    def trim(self, longest: int) -> Self:
        """Return the state without memory that no example needs; see `trim`."""
        return self


def take_rows(state: State, indices: TensorLike) -> State:
    """Return the states of some examples of a batch, in any order and number.

    Args:
        state: State of a module.
        indices: Examples, integers of shape (rows,).

    Example:
        >>> from ember_ml.nn.states import take_rows
        >>> layer = nn.layers.GRU(2)
        >>> _, state = layer(ops.ones((3, 5, 2)), state=layer.initial_state(3))
        >>> take_rows(state, [2, 0]).shape
        (2, 2)
    """
    wanted = convert_to_tensor(indices)
    if not wanted.dtype.is_integer:
        raise ArgumentTypeError(f"states.take_rows: indices must be integers, not {wanted.dtype}")

    def take(x: Tensor) -> Tensor:
        return ops.take(x, wanted.to_backend(x.backend), axis=0)

    return _map(take, lambda node: node.take_rows(wanted), state)


def join(states: Sequence[State]) -> State:
    """Return the states of several batches as the state of one batch.

    Args:
        states: States of the same module, at least one.

    Example:
        >>> from ember_ml.nn.states import join
        >>> layer = nn.layers.GRU(2)
        >>> join([layer.initial_state(3), layer.initial_state(1)]).shape
        (4, 2)
    """
    if not states:
        raise ArgumentError("join: states is empty; pass at least one state")
    first = states[0]
    kinds = sorted({type(state).__name__ for state in states})
    if len(kinds) > 1:
        raise ArgumentError(
            f"states.join: the states must be of the same module, but contain {' and '.join(kinds)}"
        )
    if len(states) == 1:
        return first
    if isinstance(first, StateNode):
        return type(first).join(states)
    if isinstance(first, dict):
        return {key: join([state[key] for state in states]) for key in first}
    if isinstance(first, (list, tuple)):
        parts = [join(parts) for parts in zip(*states, strict=True)]
        return tree.sequence_like(type(first), parts)
    return ops.concat(list(states), axis=0)


def reserve(state: State) -> State:
    """Return the state with room for further positions, for inference.

    A KV cache is then extended in place, in memory that doubles when it is full. Earlier states
    stay valid. Gradients do not flow through positions that are added in place.

    Args:
        state: State of a module.
    """
    return _map(lambda x: x, lambda node: node.reserve(), state)


def fix(state: State, capacity: int) -> State:
    """Return the state in a form whose shapes do not change, for compiled steps.

    Steps overwrite such a state: earlier states are not valid afterwards. Only `step` takes it.

    Args:
        state: State of a module.
        capacity: Number of positions that a KV cache holds, earlier ones included.

    Raises:
        NotImplementedError: If the state of a layer has no such form (Hyena, FFTConv).
    """
    return _map(lambda x: x, lambda node: node.fix(capacity), state)


def trim(state: State, longest: int) -> State:
    """Return the state without memory that only removed examples needed.

    A KV cache has as many slots as its longest example had. `take_rows` leaves them.

    Args:
        state: State of a module.
        longest: Number of positions so far of the longest example, or more.
    """
    return _map(lambda x: x, lambda node: node.trim(longest), state)


def _map(
    function: Callable[[Tensor], Tensor], on_node: Callable[[StateNode], State], state: State
) -> State:
    """Return a state with its nodes and the tensors outside them replaced."""
    if isinstance(state, StateNode):
        return on_node(state)
    if isinstance(state, dict):
        return {key: _map(function, on_node, part) for key, part in state.items()}
    if isinstance(state, (list, tuple)):
        return tree.sequence_like(type(state), [_map(function, on_node, part) for part in state])
    return function(state)
