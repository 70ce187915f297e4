"""Execution plan of a block wiring: the order of the blocks, and checks of the connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ember_ml.nn.wirings.base import WiringError
from ember_ml.registry.base import close_matches


class Connection(NamedTuple):
    """Connection from a block or an input to a block."""

    source: str
    target: str
    delayed: bool = False
    """Whether the target reads the output of the previous position."""

    def __str__(self) -> str:
        return f"{self.source} {'~>' if self.delayed else '->'} {self.target}"


@dataclass(frozen=True)
class Plan:
    """Execution plan of a wiring."""

    stages: tuple[tuple[str, ...], ...]
    """Blocks that run together, in order: a single block, or the blocks of a loop."""
    loops: frozenset[str]
    """Blocks in loops, which run position by position."""
    into: Mapping[str, tuple[Connection, ...]]
    """Connections into each block."""
    outputs: tuple[str, ...]

    @property
    def order(self) -> list[str]:
        """All blocks in execution order."""
        return [name for stage in self.stages for name in stage]

    @property
    def delayed(self) -> list[str]:
        """Sources of delayed connections."""
        edges = (edge for name in self.order for edge in self.into[name] if edge.delayed)
        return list(dict.fromkeys(edge.source for edge in edges))


def create_plan(
    inputs: Sequence[str],
    blocks: Sequence[str],
    connections: Sequence[Connection],
    outputs: Sequence[str] | None,
) -> Plan:
    """Return the plan of a wiring; raise a WiringError that names the blocks if it is invalid."""
    if not blocks:
        raise WiringError("there are no blocks; add some with add_block")
    stages = _stages(blocks, connections)
    edges = [*connections, *_first(inputs, stages, connections)]
    _check_connected(inputs, blocks, connections, edges, outputs)
    chosen = _last(stages, connections) if outputs is None else tuple(outputs)
    _check_used(blocks, edges, chosen)
    selves = {edge.source for edge in edges if edge.source == edge.target}
    loops = {name for stage in stages if len(stage) > 1 or stage[0] in selves for name in stage}
    into = {name: tuple(edge for edge in edges if edge.target == name) for name in blocks}
    return Plan(tuple(stages), frozenset(loops), into, chosen)


def check_known(what: str, names: Iterable[str], blocks: Iterable[str]) -> None:
    """Raise a WiringError with close matches if a name is not the name of a block."""
    blocks = list(blocks)
    for name in names:
        if name not in blocks:
            hint = close_matches(name, blocks) or f"; there are {_listed(blocks, 'none')}"
            raise WiringError(f"{what}: there is no block {name!r}{hint}")


def _stages(blocks: Sequence[str], connections: Sequence[Connection]) -> list[tuple[str, ...]]:
    """Return groups of mutually connected blocks, each after those that it reads."""
    reach = {name: _reached([name], connections) for name in blocks}
    together = {
        name: tuple(
            other
            for other in blocks
            if other == name or (other in reach[name] and name in reach[other])
        )
        for name in blocks
    }
    groups = list(dict.fromkeys(together.values()))
    before: dict[Any, set[Any]] = {group: set() for group in groups}
    for source, target, _ in connections:
        if source in together and together[source] != together[target]:
            before[together[target]].add(together[source])
    return [_in_order(group, connections) for group in _sorted(groups, before)[0]]


def _in_order(group: tuple[str, ...], connections: Sequence[Connection]) -> tuple[str, ...]:
    """Return the blocks of a loop, each after those that it reads without delay."""
    before: dict[Any, set[Any]] = {name: set() for name in group}
    for source, target, delayed in connections:
        if source in before and target in before and not delayed:
            before[target].add(source)
    done, stuck = _sorted(group, before)
    if stuck:
        path = " -> ".join(repr(name) for name in _cycle(stuck, before))
        raise WiringError(f"{path} is a cycle; one of its connections must be delayed")
    return tuple(done)


def _sorted(items: Sequence[Any], before: Mapping[Any, set[Any]]) -> tuple[list[Any], list[Any]]:
    """Return the items in topological order, and those that wait for each other."""
    done: dict[Any, None] = {}
    waiting = list(items)
    while True:
        item = next((item for item in waiting if before[item] <= done.keys()), None)
        if item is None:
            return list(done), waiting
        done[item] = None
        waiting.remove(item)


def _cycle(stuck: Sequence[str], before: Mapping[str, set[str]]) -> list[str]:
    """Return a cycle among items that wait for each other, with its first item at both ends."""
    path = [stuck[0]]
    while path[-1] not in path[:-1]:
        path.append(next(name for name in stuck if name in before[path[-1]]))
    return path[path.index(path[-1]) :][::-1]


def _first(
    inputs: Sequence[str], stages: Sequence[tuple[str, ...]], connections: Sequence[Connection]
) -> list[Connection]:
    """Return connections from a single input to the blocks that read nothing else."""
    if len(inputs) > 1:
        return []
    entries = []
    for stage in stages:
        if any(edge.target in stage and edge.source not in stage for edge in connections):
            continue
        read = {edge.target for edge in connections if not edge.delayed}
        entries += [Connection(inputs[0], name) for name in stage if name not in read]
    return entries


def _last(stages: Sequence[tuple[str, ...]], connections: Sequence[Connection]) -> tuple[str, ...]:
    """Return the blocks that no other block reads; of a loop that none reads, its last blocks."""
    ends: list[str] = []
    for stage in stages:
        if any(edge.source in stage and edge.target not in stage for edge in connections):
            continue
        leading = {edge.source for edge in connections if not edge.delayed}
        ends += [name for name in stage if name not in leading]
    return tuple(ends)


def _reached(start: Iterable[str], edges: Sequence[Connection]) -> set[str]:
    """Return what can be reached from the start; the start itself only through a loop."""
    after: dict[str, list[str]] = {}
    for source, target, _ in edges:
        after.setdefault(source, []).append(target)
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        new = set(after.get(waiting.pop(), ())) - reached
        reached |= new
        waiting += new
    return reached


def _check_connected(
    inputs: Sequence[str],
    blocks: Sequence[str],
    given: Sequence[Connection],
    edges: Sequence[Connection],
    outputs: Sequence[str] | None,
) -> None:
    named = {name for source, target, _ in given for name in (source, target)}
    alone = [name for name in blocks if name not in named and name not in (outputs or ())]
    if alone and len(blocks) > 1:
        raise WiringError(f"{alone[0]!r} is not connected; connect it to another block or an input")
    reached = _reached(inputs, edges)
    for name in blocks:
        if name not in reached:
            raise WiringError(f"no input leads to {name!r}; the inputs are {_listed(inputs)}")
    for name in inputs:
        if not any(edge.source == name for edge in edges):
            raise WiringError(f"no block reads the input {name!r}; connect it to one")


def _check_used(blocks: Sequence[str], edges: Sequence[Connection], outputs: Sequence[str]) -> None:
    check_known("outputs", outputs, blocks)
    against = [Connection(target, source) for source, target, _ in edges]
    read = _reached(outputs, against) | set(outputs)
    for name in blocks:
        if name not in read:
            raise WiringError(
                f"no block reads the output of {name!r}; connect it to a block that leads to one "
                f"of the outputs {_listed(outputs)}, or add it to them"
            )


def _listed(names: Iterable[str], nothing: str = "") -> str:
    return ", ".join(repr(name) for name in names) or nothing
