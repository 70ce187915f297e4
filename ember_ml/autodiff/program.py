"""The program that a tape writes down: calls, and the values that went in and came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import align, recording, runtime
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.constants import CONSTANT

_new = object.__new__
_tuple: Any = tuple.__new__
_NUMBERS = frozenset((float, int, bool, complex))
_NOTHING: dict[str, Any] = {}
_NONE = (None, None)
Values = list[EmberTensor]
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


def snapshot(x: EmberTensor) -> EmberTensor:
    """A tensor of the same native array, which keeps it when x is given another value."""
    tensor = _new(EmberTensor)
    tensor._data = x._data
    tensor._backend = x._backend
    tensor._tag = x._tag
    return tensor


_flowing: set[str] = set()


def _flows(tag: str) -> bool:
    if runtime.DTYPE_OF_TAG[tag].kind in ("float", "complex"):
        _flowing.add(tag)
    return tag in _flowing


def is_differentiable(x: EmberTensor) -> bool:
    """Whether gradients flow to tensors of this dtype."""
    return x._tag in _flowing or _flows(x._tag)


def _operand(
    x: EmberTensor, position: int, place: int | None, logs: list[ProgramLog], inputs: list[Any]
) -> EmberTensor:
    """A snapshot of an operand; one that is tracked is entered among the inputs."""
    key = id(x._data)
    for log in logs:
        known = log.values.get(key)
        if known is not None:
            inputs.append((position, place, known))
            return known
    return snapshot(x)


class ProgramLog:
    """What a tape wrote down on a backend. A value is known by its native array's identity.

    Attributes:
        values: id of a native array -> snapshot of the tensor, which keeps the array alive.
        since: id of a watched array -> how many steps there were; earlier ones saw a constant.
    """

    by_rules = False
    """Whether ops are differentiated by rules, so that an op without one must give its body."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.values: dict[int, EmberTensor] = {}
        self.since: dict[int, int] = {}
        self.steps: list[Step] = []

    def watch(self, x: EmberTensor) -> None:
        """Track a tensor from here on."""
        key = id(x._data)
        if key not in self.values:
            self.values[key] = snapshot(x)
            self.since[key] = len(self.steps)

    def unary(self, op: Any, x: Any) -> Any:
        """`execute` for the usual call of one tensor on the only tape; else None."""
        if type(x) is not EmberTensor or (op.vjps is None if self.by_rules else op.key in CONSTANT):
            return None
        known = self.values.get(id(x._data))
        kernel, tag = op.kernels.get(x._tag, _NONE)
        if known is None or tag not in _flowing:
            return None
        try:
            data = kernel(x._data)
        except Exception:  # to be explained on the long way
            return None
        return self._made(op, (known,), ((0, None, known),), data, tag)

    def binary(self, op: Any, x: Any, y: Any) -> Any:
        """`execute` for the usual call of two tensors, or a tensor and a number; else None."""
        if op.vjps is None if self.by_rules else op.key in CONSTANT:
            return None
        values = self.values
        inputs: Inputs
        if type(x) is EmberTensor and type(y) is EmberTensor:
            first, second = values.get(id(x._data)), values.get(id(y._data))
            kernel, tag = op.kernels.get(x._tag, _NONE)
            if x._tag is not y._tag or tag not in _flowing:
                return None
            if first is not None and second is not None:
                inputs = ((0, None, first), (1, None, second))
            elif first is not None:
                inputs = ((0, None, first),)
                second = snapshot(y)
            elif second is not None:
                inputs = ((1, None, second),)
                first = snapshot(x)
            else:
                return None
            try:
                data = kernel(x._data, y._data)
            except Exception:  # to be explained on the long way
                return None
            return self._made(op, (first, second), inputs, data, tag)
        return self._with_number(op, x, y)

    def _with_number(self, op: Any, x: Any, y: Any) -> Any:
        at = 0 if type(x) is EmberTensor else 1
        tensor, number = (x, y) if at == 0 else (y, x)
        if type(tensor) is not EmberTensor or type(number) not in _NUMBERS:
            return None
        known = self.values.get(id(tensor._data))
        if known is None:
            return None
        out = op.plain(x, y)
        if id(out._data) not in self.values and (out._tag in _flowing or _flows(out._tag)):
            args = (known, y) if at == 0 else (x, known)
            self._note(op, args, ((at, None, known),), out._data, out._tag)
        return out

    def _made(
        self, op: Any, args: Sequence[Any], inputs: Inputs, data: Any, tag: str
    ) -> EmberTensor:
        """The result of a call, written down unless it is an operand."""
        out = _new(EmberTensor)
        out._data = data
        out._backend = self.backend
        out._tag = tag
        if id(data) not in self.values:
            self._note(op, args, inputs, data, tag)
        return out

    def _note(self, op: Any, args: Sequence[Any], inputs: Inputs, data: Any, tag: str) -> None:
        made = _new(EmberTensor)
        made._data = data
        made._backend = self.backend
        made._tag = tag
        self.values[id(data)] = made
        # as Step(...), without its function of Python
        self.steps.append(_tuple(Step, (op, args, _NOTHING, inputs, (made,), True)))

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
                log.values[id(x._data)] = x

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values, retain: bool = False
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target."""
        raise NotImplementedError

    def rows(
        self, targets: Values, sources: Values, cotangents: Values, retain: bool = False
    ) -> list[EmberTensor | None]:
        """The gradients for each of a batch of cotangents, stacked."""
        found = [
            self.gradient(targets, sources, [g[at] for g in cotangents])
            for at in range(cotangents[0].shape[0])
        ]
        columns = zip(*found, strict=True)
        return [None if column[0] is None else ops.stack(column) for column in columns]

    def depending(self, sources: Values) -> tuple[set[int], list[tuple[int, Step]]]:
        """The values that depend on the sources, and the steps (by number) that made them."""
        needed = {id(x._data): self.since.get(id(x._data), 0) for x in sources}
        if not any(self.since.values()) and self.since.keys() <= needed.keys():
            return set(self.values), list(enumerate(self.steps))  # all that is watched
        found = []
        for index, step in enumerate(self.steps):
            for _, _, x in step.inputs:
                since = needed.get(id(x._data))
                if since is not None and since <= index:
                    break
            else:
                continue
            found.append((index, step))
            for x in step.outs:
                needed.setdefault(id(getattr(x, "_data", x)), 0)
        return set(needed), found
