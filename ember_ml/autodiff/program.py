"""The program that a tape writes down: calls, and the values that went in and came out."""

from __future__ import annotations

from typing import Any

from ember_ml._core import align, runtime
from ember_ml._core.tensor import EmberTensor

_new = object.__new__


class Step:
    """A call.

    Attributes:
        args: the arguments, each tensor as a snapshot that nobody else changes.
        inputs: (position, place within a sequence or None, tensor) of the tracked operands.
        outs: snapshots of the results.
        single: whether the result is one tensor, not a tuple or list of them.
    """

    __slots__ = ("args", "inputs", "kwargs", "op", "outs", "single")

    def __init__(
        self,
        op: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[tuple[int, int | None, EmberTensor]],
        outs: tuple[Any, ...],
        single: bool,
    ) -> None:
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.inputs = inputs
        self.outs = outs
        self.single = single

    @property
    def result(self) -> Any:
        """What the call gave."""
        return self.outs[0] if self.single else self.outs


def snapshot(x: EmberTensor) -> EmberTensor:
    """A tensor of the same native array, which keeps it when x is given another value."""
    tensor = _new(EmberTensor)
    tensor._data = x._data
    tensor._backend = x._backend
    tensor._tag = x._tag
    return tensor


def is_differentiable(x: EmberTensor) -> bool:
    """Whether gradients flow to tensors of this dtype."""
    return runtime.DTYPE_OF_TAG[x._tag].kind in ("float", "complex")


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

    def execute(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], logs: list[ProgramLog]
    ) -> Any:
        """Compute the call, and write it into the logs."""
        if self.by_rules and op.vjps is None and op.body is not None:
            if not align.is_aligned(op, args, kwargs):
                args, kwargs = align.align(op, args, kwargs)
            return op.body(*args, **kwargs)
        out = op.plain(*args, **kwargs)
        if self.backend in op.natives:
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
        tensors = (out,) if single else tuple(out)
        outs = tuple(snapshot(x) if isinstance(x, EmberTensor) else x for x in tensors)
        made = [x for x in outs if isinstance(x, EmberTensor) and is_differentiable(x)]
        values = self.values
        if not made or any(id(x._data) in values for x in made):
            return  # nothing to differentiate; an operand itself; or already written on the way
        inputs: list[tuple[int, int | None, EmberTensor]] = []
        saved = []
        for position, value in enumerate(args):
            if isinstance(value, EmberTensor):
                value = self._operand(value, position, None, logs, inputs)
            elif type(value) is list or type(value) is tuple:
                value = [
                    self._operand(part, position, place, logs, inputs)
                    if isinstance(part, EmberTensor)
                    else part
                    for place, part in enumerate(value)
                ]
                value = tuple(value) if type(args[position]) is tuple else value
            saved.append(value)
        step = Step(op, tuple(saved), kwargs, inputs, outs, single)
        for log in logs:
            log.steps.append(step)
            for x in made:
                log.values[id(x._data)] = x

    def _operand(
        self,
        x: EmberTensor,
        position: int,
        place: int | None,
        logs: list[ProgramLog],
        inputs: list[tuple[int, int | None, EmberTensor]],
    ) -> EmberTensor:
        key = id(x._data)
        for log in logs:
            known = log.values.get(key)
            if known is not None:
                inputs.append((position, place, known))
                return known
        return snapshot(x)

    def depending(self, sources: list[EmberTensor]) -> tuple[set[int], list[Step]]:
        """The values that depend on the sources, and the steps that made them."""
        needed = {id(x._data): self.since.get(id(x._data), 0) for x in sources}
        found = []
        for index, step in enumerate(self.steps):
            for _, _, x in step.inputs:
                since = needed.get(id(x._data))
                if since is not None and since <= index:
                    break
            else:
                continue
            found.append(step)
            for x in step.outs:
                needed.setdefault(id(getattr(x, "_data", x)), 0)
        return set(needed), found
