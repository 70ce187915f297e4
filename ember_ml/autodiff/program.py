"""The program that a tape writes down: calls, and the values that went in and came out."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import align, recording
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.quick import NUMBERS, Quick, QuickLog
from ember_ml.autodiff.values import Values, is_differentiable, like, snapshot

Inputs = Sequence[tuple[int, int | None, EmberTensor]]


class Step(NamedTuple):
    """A call.

    Attributes:
        args: the arguments, each tensor as a snapshot that nobody else changes.
        inputs: (position, place within a sequence or None, tensor) of the tracked operands.
        outs: snapshots of the results.
        single: whether the result is one tensor, not a tuple or list of them.
    """

    op: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    inputs: Inputs
    outs: tuple[Any, ...]
    single: bool


def _operand(
    x: EmberTensor, position: int, place: int | None, logs: list[ProgramLog], inputs: list[Any]
) -> EmberTensor:
    """A snapshot of an operand; one that is tracked is entered among the inputs."""
    key = id(x._data)
    for log in logs:
        known = log.values.get(key)
        if known is not None:
            tensor = like(known, x)
            inputs.append((position, place, tensor))
            return tensor
    return snapshot(x)


class ProgramLog(QuickLog):
    """What a tape wrote down on a backend. A value is known by its native array's identity.

    Attributes:
        since: id of a watched array -> how many steps there were; earlier ones saw a constant.
    """

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self.since: dict[int, int] = {}

    def watch(self, x: EmberTensor) -> None:
        """Track a tensor from here on."""
        key = id(x._data)
        if key not in self.values:
            self.values[key] = x._data
            self.since[key] = len(self.steps)

    def step(self, number: int) -> Step:
        """A step in the general form."""
        step = self.steps[number]
        if isinstance(step, Step):
            return step
        op, given, positions, data, _ = step
        args = [x if type(x) in NUMBERS else wrap(x, self.backend) for x in given]
        inputs = [(at, None, args[at]) for at in positions]
        return Step(op, args, {}, inputs, (wrap(data, self.backend),), True)

    def execute(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], logs: list[ProgramLog]
    ) -> Any:
        """Compute the call, and write it into the logs."""
        if self.by_rules and op.vjps is None and op.body is not None:
            if not align.is_aligned(op, args, kwargs):
                args, kwargs = align.align(op, args, kwargs)
            return op.body(*args, **kwargs)
        if self.by_rules and self.backend not in op.natives:
            return self._execute_body(op, args, kwargs, logs)
        out = op.plain(*args, **kwargs)
        if self.backend in op.natives:
            self._write(op, args, kwargs, out, logs)
        return out

    def _execute_body(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], logs: list[ProgramLog]
    ) -> Any:
        """A composite with a rule: one step, whatever its body does."""
        if not align.is_aligned(op, args, kwargs):
            args, kwargs = align.align(op, args, kwargs)
        with recording.only():
            out = op.plain(*args, **kwargs)
        self._write(op, args, kwargs, out, logs)
        return out

    def _write(
        self,
        op: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        logs: list[ProgramLog],
    ) -> None:
        single = isinstance(out, EmberTensor)
        outs = tuple(
            [snapshot(x) if isinstance(x, EmberTensor) else x for x in ((out,) if single else out)]
        )
        made = [x for x in outs if isinstance(x, EmberTensor) and is_differentiable(x)]
        if not made or id(made[0]._data) in self.values:
            return  # nothing to differentiate; an operand itself; or already written on the way
        inputs: list[tuple[int, int | None, EmberTensor]] = []
        saved = []
        for position, value in enumerate(args):
            if isinstance(value, EmberTensor):
                value = _operand(value, position, None, logs, inputs)
            elif type(value) is list or type(value) is tuple:
                value = type(value)(
                    [
                        _operand(part, position, place, logs, inputs)
                        if isinstance(part, EmberTensor)
                        else part
                        for place, part in enumerate(value)
                    ]
                )
            saved.append(value)
        step = Step(op, saved, kwargs, inputs, outs, single)
        for log in logs:
            log.steps.append(step)
            for x in made:
                log.values[id(x._data)] = x._data

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target."""
        raise NotImplementedError

    def rows(
        self, targets: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients for each of a batch of cotangents, stacked."""
        found = [
            self.gradient(targets, sources, [g[at] for g in cotangents])
            for at in range(cotangents[0].shape[0])
        ]
        columns = zip(*found, strict=True)
        return [None if column[0] is None else ops.stack(column) for column in columns]

    def depending(self, sources: Values) -> tuple[Container[int], Sequence[int]]:
        """The values that depend on the sources, and the numbers of the steps that made them."""
        needed = {id(x._data): self.since.get(id(x._data), 0) for x in sources}
        if not any(self.since.values()) and self.since.keys() <= needed.keys():
            return self.values, range(len(self.steps))  # all that is watched
        found = []
        for number, step in enumerate(self.steps):
            read, made = _arrays(step)
            if any(needed.get(id(data), number + 1) <= number for data in read):
                found.append(number)
                for data in made:
                    needed.setdefault(id(data), 0)
        return needed, found


def _arrays(step: Step | Quick) -> tuple[list[Any], list[Any]]:
    """The native arrays of a step's tracked operands, and of its results."""
    if isinstance(step, Step):
        made = [getattr(x, "_data", x) for x in step.outs]
        return [x._data for _, _, x in step.inputs], made
    _, args, positions, data, _ = step
    return [args[at] for at in positions], [data]
