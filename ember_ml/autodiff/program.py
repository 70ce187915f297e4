"""Recorded programs: the calls of a tape, with their operands and results."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, cast

from ember_ml import ops
from ember_ml._core import align, recording
from ember_ml._core.op import Op
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml._core.types import NativeArray, Scalar
from ember_ml.autodiff.constants import CONSTANT
from ember_ml.autodiff.log import Args, KwArgs, Log, Recordable, Result
from ember_ml.autodiff.values import (
    DIFFERENTIABLE_TAGS,
    Values,
    is_differentiable,
    is_differentiable_tag,
    like,
    snapshot,
)

Inputs: TypeAlias = Sequence[tuple[int, int | None, Tensor]]
"""(position, index within a sequence or None, tensor) of each tracked operand."""


class Step(NamedTuple):
    """A recorded call.

    Attributes:
        op: The op or procedure.
        args: The arguments; tensors are snapshots.
        kwargs: The keyword arguments.
        inputs: The tracked operands.
        outs: Snapshots of the results.
        single: Whether the result is one tensor, not a sequence.
    """

    op: Recordable
    args: Sequence[object]
    kwargs: KwArgs
    inputs: Inputs
    outs: tuple[Tensor, ...]
    single: bool


QuickStep: TypeAlias = tuple[
    Op, tuple[NativeArray | Scalar, ...], tuple[int, ...], NativeArray, str
]
"""A recorded call of a unary or binary op, in the form that is cheapest to create.

(op, native arrays and numbers, positions of the tracked operands, native result, its tag).
"""


def _no_kernel(*operands: NativeArray) -> NoReturn:
    raise AssertionError("an op without a kernel was called")


NUMBERS = frozenset((float, int, bool, complex))
_new = object.__new__
_UNKNOWN: tuple[Callable[..., NativeArray], None] = (_no_kernel, None)
_FIRST: tuple[int, ...] = (0,)
_SECOND: tuple[int, ...] = (1,)
_BOTH: tuple[int, ...] = (0, 1)


class ProgramLog(Log):
    """Log that records a program: a list of steps.

    `unary` and `binary` are a fast path, which the dispatch uses when only one tape is open.

    Attributes:
        values: Id of a native array -> the array, which keeps it alive, or its replacement.
        steps: The recorded calls.
        since: Id of a watched array -> number of steps before it was watched. To these steps it
            is a constant.
        by_rules: Whether VJP rules differentiate the ops, so that ops without a rule are recorded
            through their bodies.
    """

    values: dict[int, NativeArray]
    by_rules = False

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self.values = {}
        self.steps: list[Step | QuickStep] = []
        self.since: dict[int, int] = {}

    def watch(self, x: Tensor) -> None:
        """Track a tensor from here on."""
        key = id(x._data)
        if key not in self.values:
            self.values[key] = x._data
            self.since[key] = len(self.steps)

    def unary(self, op: Op, x: object) -> Tensor | None:
        """Compute and record a call with one tensor; return None if the slow path must do it."""
        if type(x) is not EmberTensor or (op.vjps is None if self.by_rules else op.key in CONSTANT):
            return None
        known = self.values.get(id(x._data))
        kernel, tag = op.kernels.get(x._tag, _UNKNOWN)
        if known is None or tag not in DIFFERENTIABLE_TAGS:
            return None
        try:
            out = kernel(x._data)
        except Exception:  # the slow path raises it with an explanation
            return None
        return self._record(op, (known,), _FIRST, out, tag)

    def binary(self, op: Op, x: object, y: object) -> Tensor | None:
        """Compute and record a call with two tensors, or a tensor and a number, like `unary`."""
        if op.vjps is None if self.by_rules else op.key in CONSTANT:
            return None
        if type(x) is not EmberTensor or type(y) is not EmberTensor:
            return self._with_number(op, x, y)
        kernel, tag = op.kernels.get(x._tag, _UNKNOWN)
        if x._tag is not y._tag or tag not in DIFFERENTIABLE_TAGS:
            return None
        first, second = self.values.get(id(x._data)), self.values.get(id(y._data))
        if first is None:
            if second is None:
                return None
            first, positions = x._data, _SECOND
        elif second is None:
            second, positions = y._data, _FIRST
        else:
            positions = _BOTH
        try:
            out = kernel(x._data, y._data)
        except Exception:  # the slow path raises it with an explanation
            return None
        return self._record(op, (first, second), positions, out, tag)

    def _with_number(self, op: Op, x: object, y: object) -> Tensor | None:
        tensor: object
        number: Any
        if type(x) is EmberTensor:
            tensor, number, table, positions = x, y, op.right.floats, _FIRST
        else:
            tensor, number, table, positions = y, x, op.left.floats, _SECOND
        if type(tensor) is not EmberTensor or type(number) not in NUMBERS:
            return None
        known = self.values.get(id(tensor._data))
        if known is None:
            return None
        args = (known, number) if tensor is x else (number, known)
        kernel, tag = table.get(tensor._tag, _UNKNOWN)
        if type(number) is float and tag in DIFFERENTIABLE_TAGS:
            data = tensor._data
            try:
                out = kernel(data, number) if tensor is x else kernel(number, data)
            except Exception:  # the slow path raises it with an explanation
                return None
            return self._record(op, args, positions, out, tag)
        result = op.plain(x, y)
        if result._tag not in DIFFERENTIABLE_TAGS and not is_differentiable_tag(result._tag):
            return result
        return self._record(op, args, positions, result._data, result._tag)

    def _record(
        self,
        op: Op,
        args: tuple[NativeArray | Scalar, ...],
        positions: tuple[int, ...],
        data: NativeArray,
        tag: str,
    ) -> Tensor:
        """Return the result of a call, and record the call unless the result is an operand."""
        key, values = id(data), self.values
        if key not in values:
            values[key] = data
            self.steps.append((op, args, positions, data, tag))
        out = _new(EmberTensor)
        out._data = data
        out._backend = self.backend
        out._tag = tag
        return out

    def step(self, number: int) -> Step:
        """Return a step in the general form."""
        step = self.steps[number]
        if isinstance(step, Step):
            return step
        op, given, positions, data, _ = step
        args: list[Any] = [x if type(x) in NUMBERS else wrap(x, self.backend) for x in given]
        inputs = [(at, None, args[at]) for at in positions]
        return Step(op, args, {}, inputs, (wrap(data, self.backend),), True)

    def execute(self, op: Recordable, args: Args, kwargs: KwArgs, logs: Sequence[Self]) -> Result:
        """Compute a call and record it in the logs."""
        by_rules = any(log.by_rules for log in logs)
        if by_rules and op.body is not None and _uses_body(op, self.backend):
            args, kwargs = _aligned(op, args, kwargs)
            return op.body(*args, **kwargs)
        if by_rules and self.backend not in op.natives:  # record one step, not the ops of the body
            args, kwargs = _aligned(op, args, kwargs)
            with recording.only():
                out = op.plain(*args, **kwargs)
            self._append(op, args, kwargs, out, logs)
            return out
        out = op.plain(*args, **kwargs)
        if self.backend in op.natives:
            self._append(op, args, kwargs, out, logs)
        return out

    def _append(
        self, op: Recordable, args: Args, kwargs: KwArgs, out: Result, logs: Sequence[ProgramLog]
    ) -> None:
        single = isinstance(out, EmberTensor)
        results = (out,) if isinstance(out, EmberTensor) else out
        outs = tuple([snapshot(x) if isinstance(x, EmberTensor) else x for x in results])
        tracked = [x for x in outs if isinstance(x, EmberTensor) and is_differentiable(x)]
        if not tracked or id(tracked[0]._data) in self.values:
            return  # nothing to differentiate, or the result is an operand or recorded already
        inputs: list[tuple[int, int | None, Tensor]] = []
        saved: list[object] = []
        for position, value in enumerate(args):
            if isinstance(value, EmberTensor):
                value = _saved_operand(value, position, None, logs, inputs)
            elif type(value) is list or type(value) is tuple:
                value = type(value)(
                    [
                        _saved_operand(part, position, index, logs, inputs)
                        if isinstance(part, EmberTensor)
                        else part
                        for index, part in enumerate(value)
                    ]
                )
            saved.append(value)
        step = Step(op, saved, kwargs, inputs, outs, single)
        for log in logs:
            log.steps.append(step)
            for x in tracked:
                log.values[id(x._data)] = x._data

    def gradient(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients of the sources, None where no path leads to a target."""
        raise NotImplementedError

    def rows(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients for each of a batch of cotangents, stacked along axis 0."""
        rows = [
            self.gradient(targets, sources, [g[row] for g in cotangents])
            for row in range(cotangents[0].shape[0])
        ]
        columns = zip(*rows, strict=True)
        return [None if column[0] is None else ops.stack(column) for column in columns]

    def dependents(self, sources: Values) -> tuple[Container[int], Sequence[int]]:
        """Return the ids of the values that depend on the sources, and their step numbers."""
        ids = {id(x._data): self.since.get(id(x._data), 0) for x in sources}
        if not any(self.since.values()) and self.since.keys() <= ids.keys():
            return self.values, range(len(self.steps))  # the sources are all watched values
        numbers = []
        for number, step in enumerate(self.steps):
            operands, results = _arrays(step)
            if any(ids.get(id(data), number + 1) <= number for data in operands):
                numbers.append(number)
                for data in results:
                    ids.setdefault(id(data), 0)
        return ids, numbers


def _uses_body(op: Recordable, backend: str) -> bool:
    """Return whether to record the ops of a composite's body, because no VJP rule applies to it."""
    return op.vjps is None or (op.vjps.native_only and backend not in op.natives)


def _aligned(op: Recordable, args: Args, kwargs: KwArgs) -> tuple[Args, KwArgs]:
    """Return the arguments of an op's body, on one backend and in one dtype."""
    op = cast(Op, op)
    return (args, kwargs) if align.is_aligned(op, args, kwargs) else align.align(op, args, kwargs)


def _saved_operand(
    x: Tensor,
    position: int,
    index: int | None,
    logs: Sequence[ProgramLog],
    inputs: list[tuple[int, int | None, Tensor]],
) -> Tensor:
    """Return a snapshot of an operand, and add it to the inputs if it is tracked."""
    key = id(x._data)
    for log in logs:
        known = log.values.get(key)
        if known is not None:
            tensor = like(known, x)
            inputs.append((position, index, tensor))
            return tensor
    return snapshot(x)


def _arrays(step: Step | QuickStep) -> tuple[Sequence[object], Sequence[object]]:
    """Return the native arrays of a step's tracked operands and of its results."""
    if isinstance(step, Step):
        results = [getattr(x, "_data", x) for x in step.outs]
        return [x._data for _, _, x in step.inputs], results
    _, args, positions, data, _ = step
    return [args[at] for at in positions], [data]
