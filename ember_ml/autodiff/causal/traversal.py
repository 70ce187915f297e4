"""Ops that led to a tensor or followed from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.autodiff.causal.events import Event
from ember_ml.autodiff.causal.operations import OperationRecord


def ancestors(record: OperationRecord, of: Tensor | Event, depth: int | None) -> list[Event]:
    """Return the events that led to a tensor or an event, itself first, the latest first.

    Args:
        record: The recorded ops.
        of: Tensor or event.
        depth: Maximum number of steps to go back; None for no limit.
    """
    by_tick: dict[int | None, Event] = {event.tick: event for event in record.events}
    return _closure(
        record, of, depth, lambda event: (by_tick.get(tick) for tick in event.causal.causes), True
    )


def descendants(record: OperationRecord, of: Tensor | Event, depth: int | None) -> list[Event]:
    """Return the events that followed from a tensor or an event, the earliest first.

    Args:
        record: The recorded ops.
        of: Tensor or event.
        depth: Maximum number of steps to go forward; None for no limit.
    """
    readers: dict[int, list[Event]] = {}
    for event in record.events:
        for key in event.values:
            readers.setdefault(key, []).append(event)
    if isinstance(of, EmberTensor) and record.event_of(of) is None:
        reached: dict[int, Event] = {}
        for first in readers.get(id(of._data), []):
            rest = None if depth is None else depth - 1
            for event in (first, *descendants(record, first, rest)):
                reached[event.tick] = event
        return [reached[tick] for tick in sorted(reached)]
    closure = _closure(
        record,
        of,
        depth,
        lambda event: (one for key in event.results for one in readers.get(key, [])),
        False,
    )
    return closure[1:]


def _closure(
    record: OperationRecord,
    of: Tensor | Event,
    depth: int | None,
    neighbors: Callable[[Event], Iterator[Event | None]],
    backward: bool,
) -> list[Event]:
    if not isinstance(of, (EmberTensor, Event)):
        raise ArgumentTypeError(f"expected a recorded tensor, op or spike, not {type(of).__name__}")
    start = record.event_of(of) if isinstance(of, EmberTensor) else of
    if start is None:
        return []
    reached, frontier = {start.tick: start}, [start]
    while frontier and (depth is None or depth > 0):
        depth = None if depth is None else depth - 1
        adjacent = [one for event in frontier for one in neighbors(event) if one is not None]
        frontier = [event for event in adjacent if event.tick not in reached]
        reached.update((event.tick, event) for event in frontier)
    return [reached[tick] for tick in sorted(reached, reverse=backward)]
