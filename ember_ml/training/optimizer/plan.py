"""Which parameters are renewed together, and by which numbers."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ember_ml._core import runtime
from ember_ml.backend import selection
from ember_ml.nn import Parameter
from ember_ml.training.optimizer.groups import Group
from ember_ml.training.optimizer.rules import Arrays, Options, Rule, State

HALF = ("float16", "bfloat16")


_KERNELS: dict[str, Any] = {}


def _load_kernels(backend: str) -> None:
    # With the backend, not at the first use: that may be inside of a compiler's trace.
    module: Any = selection.import_backend(backend)
    _KERNELS[backend] = importlib.import_module(f"{module.__name__}.optimization")


runtime.on_load.append(_load_kernels)
for _name in runtime.LOADED:
    _load_kernels(_name)


def kernels(backend: str) -> Any:
    """A loaded backend's arithmetic on lists of arrays."""
    return _KERNELS[backend]


def wide(parameter: Parameter) -> str:
    """The dtype in which a parameter's state is kept and its step is computed."""
    return "float32" if parameter.dtype.name in HALF else parameter.dtype.name


@dataclass(frozen=True)
class Member:
    """A parameter, with what decides on its step."""

    index: int
    parameter: Parameter
    group: Group
    rule: Rule
    places: dict[str, int]
    """Slot -> where its array is in the list of all."""
    lag: int
    """How many steps it had no gradient."""

    def key(self) -> tuple[Any, ...]:
        """Members of one key are renewed together."""
        parameter = self.parameter
        return (
            id(self.rule),
            id(self.group),
            parameter.decay,
            self.lag,
            parameter._tag,
            parameter.device,
        )


@dataclass(frozen=True)
class Piece:
    """Parameters that are renewed by one call."""

    members: list[Member]
    indices: list[int]
    slots: dict[str, list[int]]
    group: Group
    rule: Rule
    options: Options
    lag: int
    run: Callable[..., tuple[Arrays, State]]
    """(params, grads, state, scalars) -> (params, state); may overwrite the state."""
    pure: Callable[..., tuple[Arrays, State]]
    """The same, that neither overwrites nor compiles."""


class Planner:
    """Makes pieces, and keeps the functions that were compiled for them.

    Args:
        backend: where the parameters are.
    """

    def __init__(self, backend: str) -> None:
        self.kernels = kernels(backend)
        self._compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def pieces(self, members: Iterable[Member]) -> list[Piece]:
        """The members by key, in pieces that the backend can hold twice."""
        alike: dict[tuple[Any, ...], list[Member]] = {}
        for member in members:
            alike.setdefault(member.key(), []).append(member)
        return [
            self._piece(part) for batch in alike.values() for part in _split(batch, self.kernels)
        ]

    def _piece(self, members: list[Member]) -> Piece:
        first = members[0]
        parameter, group, rule = first.parameter, first.group, first.rule
        options = dict(rule.read(group.options))
        if not parameter.decay and "weight_decay" in options:
            options["weight_decay"] = 0.0
        kind = (id(rule), id(group.options), parameter.decay, parameter._tag)
        k, names = self.kernels, (parameter.dtype.name, wide(parameter))
        if kind not in self._compiled:
            self._compiled[kind] = k.compiled(
                functools.partial(_renew, k, k.own, rule, options, *names)
            )
        return Piece(
            members=members,
            indices=[member.index for member in members],
            slots={slot: [member.places[slot] for member in members] for slot in first.places},
            group=group,
            rule=rule,
            options=options,
            lag=first.lag,
            run=self._compiled[kind],
            pure=functools.partial(_pure, k, rule, options, *names),
        )


def _split(members: list[Member], k: Any) -> Iterable[list[Member]]:
    if k.CHUNK_BYTES is None:
        yield members
        return
    part: list[Member] = []
    held = 0
    for member in members:
        size = member.parameter.nbytes
        if part and held + size > k.CHUNK_BYTES:
            yield part
            part, held = [], 0
        part.append(member)
        held += size
    yield part


def _renew(
    k: Any,
    take: Callable[[Arrays], Arrays],
    rule: Rule,
    options: Options,
    narrow: str,
    broad: str,
    params: Arrays,
    grads: Arrays,
    state: State,
    scalars: Sequence[Any],
) -> tuple[Arrays, State]:
    """One step of alike parameters; `take` gives arrays that may be overwritten for theirs."""
    params = take(params) if narrow == broad else k.cast(params, broad)
    grads = k.cast(grads, broad)
    kernel = k.fused(rule.name) if type(scalars[0]) is float else None
    if kernel is None:
        params, state = rule.advance(k, params, grads, state, options, scalars)
    else:
        params, state = kernel(params, grads, state, options, scalars)
    return (params if narrow == broad else k.cast(params, narrow)), state


def _pure(
    k: Any,
    rule: Rule,
    options: Options,
    narrow: str,
    broad: str,
    params: Arrays,
    grads: Arrays,
    state: State,
    scalars: Sequence[Any],
) -> tuple[Arrays, State]:
    copied = {slot: k.copy(xs) for slot, xs in state.items()}
    return _renew(k, k.copy, rule, options, narrow, broad, params, grads, copied, scalars)
