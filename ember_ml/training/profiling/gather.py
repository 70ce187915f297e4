"""Rows of a profile, from the measured calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ember_ml._core.op import OPS
from ember_ml.nn.module import Module
from ember_ml.training.profiling.events import OUTSIDE, Events, Key, Total
from ember_ml.training.profiling.operations import group_of
from ember_ml.training.profiling.result import Row

BACKWARD_FACTOR = 2.0
"""Operations of the backward pass of a call over those of the call: a product has two gradients."""
OUTSIDE_NAME = "(outside of the model)"
ROOT = "(model)"


def rows_by_op(events: Events, steps: int) -> list[Row]:
    """Return the times by op, the largest first.

    Args:
        events: The measured calls.
        steps: Number of steps.
    """
    parts: defaultdict[str, dict[Key, Total]] = defaultdict(dict)
    for key, total in events.totals.items():
        parts[key.op][key] = total
    rows = [_row(op, group_of(op), each, steps) for op, each in parts.items()]
    return sorted(rows, key=lambda row: -row.seconds)


def rows_by_group(ops: Sequence[Row]) -> list[Row]:
    """Return the times by group of ops, the largest first.

    Args:
        ops: Times by op.
    """
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in ops:
        groups[row.kind].append(row)
    rows = [
        Row(
            name,
            "",
            sum(row.calls for row in group),
            sum(row.forward for row in group),
            sum(row.backward for row in group),
            sum(row.flops for row in group),
        )
        for name, group in groups.items()
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def rows_by_module(events: Events, modules: Mapping[str, Module], steps: int) -> list[Row]:
    """Return the times by module, modules inside included, in the order of the model.

    Args:
        events: The measured calls.
        modules: The modules by name, numbered in this order.
        steps: Number of steps.
    """
    own: defaultdict[int, dict[Key, Total]] = defaultdict(dict)
    whole: defaultdict[int, dict[Key, Total]] = defaultdict(dict)
    numbers = {name: number for number, name in enumerate(modules)}
    names = list(modules)
    for key, total in events.totals.items():
        own[key.layer][key] = total
        for outer in () if key.layer == OUTSIDE else _outer_names(names[key.layer]):
            if outer in numbers:
                whole[numbers[outer]][key] = total
    rows = []
    for number, (name, module) in enumerate(modules.items()):
        row = _row(name or ROOT, type(module).__name__, whole[number], steps)
        if not row.calls:
            continue
        python = max(0.0, events.modules[number] / steps - row.forward)
        seconds = sum(total.seconds for total in own[number].values()) / steps
        rows.append(row._replace(python=python, own=seconds))
    outside = _row(OUTSIDE_NAME, "", own[OUTSIDE], steps)
    return [*rows, outside._replace(own=outside.seconds)] if own[OUTSIDE] else rows


def _outer_names(name: str) -> Iterator[str]:
    """Yield the name of a module, and those of all modules that it is inside of."""
    while name:
        yield name
        name = name.rpartition(".")[0]
    yield ""


def _row(name: str, kind: str, parts: Mapping[Key, Total], steps: int) -> Row:
    forward = {key: total for key, total in parts.items() if key.phase == "forward"}
    backward = {key: total for key, total in parts.items() if key.phase == "backward"}
    differentiated = {(key.op, key.layer) for key in backward}
    flops = sum(
        total.flops * (1.0 + BACKWARD_FACTOR * ((key.op, key.layer) in differentiated))
        for key, total in forward.items()
    )
    return Row(
        name,
        kind,
        sum(total.calls for total in forward.values()) / steps,
        sum(total.seconds for total in forward.values()) / steps,
        sum(total.seconds for total in backward.values()) / steps,
        flops / steps,
    )


def dispatch_seconds(events: Events, costs: Mapping[str, float], steps: int) -> float:
    """Return the estimated time of the dispatch in a step: calls times the cost of one.

    Args:
        events: The measured calls.
        costs: Seconds by kind of op; other kinds cost as much as "general".
        steps: Number of steps.
    """
    seconds = 0.0
    for key, total in events.totals.items():
        op = OPS.get(key.op)
        kind = "general" if op is None else op.kind
        if key.phase == "forward" or events.dispatches_backward:
            seconds += total.calls * costs.get(kind, costs["general"])
    return seconds / steps
