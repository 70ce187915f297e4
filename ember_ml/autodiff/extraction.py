"""Recorded programs as functions, and functions as steps of a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.tensor import EmberTensor, Tensor, wrap
from ember_ml.autodiff import record
from ember_ml.autodiff.log import Log, Recordable
from ember_ml.autodiff.program import ProgramLog, Step
from ember_ml.autodiff.rules.registry import VJPRule
from ember_ml.autodiff.values import Values

_END = 2**63  # after all steps

ValuesFunction: TypeAlias = Callable[[Values], Values]


class Slot(NamedTuple):
    """Placeholder of a tensor, or of a native array (in an index)."""

    number: int
    native: bool


class Instruction(NamedTuple):
    """A call with slots instead of tensors."""

    op: Recordable
    args: tuple[object, ...]
    kwargs: dict[str, object]
    outs: tuple[int, ...]
    single: bool


class Program:
    """Function of the sources and of all other values that its steps read.

    Attributes:
        sources: Slots of the sources. A source that is the result of a step represents a zero
            that is added to the result.
        constants: Slots of the other inputs.
        targets: Slots of the results.
        computed: Slots of the results of all steps.
        key: Structure of the program, without its values; None if it is not hashable. Programs
            with the same key are the same function.
    """

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.sources: list[int] = []
        self.constants: list[int] = []
        self.targets: list[int] = []
        self.computed: set[int] = set()
        self.key: Hashable = None

    def run(self, sources: Values, constants: Values, *, recorded: bool = False) -> Values:
        """Return the targets; record the calls on the open tapes if `recorded`."""
        values = dict(zip(self.constants, constants, strict=True))
        added: dict[int, Tensor] = {}
        for slot, x in zip(self.sources, sources, strict=True):
            (added if slot in self.computed else values)[slot] = x

        def read(slot: Slot) -> object:
            return values[slot.number]._data if slot.native else values[slot.number]

        for step in self.instructions:
            args = tuple([_replaced(value, read) for value in step.args])
            kwargs = {name: _replaced(value, read) for name, value in step.kwargs.items()}
            out: Any
            if recorded:
                out = record.call(step.op, args, kwargs, recording.tapes())
            else:
                out = step.op.plain(*args, **kwargs)
            for slot, x in zip(step.outs, (out,) if step.single else out, strict=True):
                values[slot] = x + added[slot] if slot in added else x
        return [values[slot] for slot in self.targets]

    def call(self, values: Values, *, recorded: bool = False) -> Values:
        """Return the targets; `values` are the sources followed by the constants."""
        count = len(self.sources)
        return self.run(values[:count], values[count:], recorded=recorded)


def extract(
    steps: Sequence[tuple[int, Step]],
    sources: Values,
    targets: Values,
    since: Mapping[int, int],
) -> tuple[Program, Values, Values]:
    """Return the program of the numbered steps, the values of its sources and of its constants.

    Args:
        steps: Numbers and steps, in the order of recording.
        sources: Inputs of the program.
        targets: Results of the program.
        since: Id of a watched array -> the first step that tracks it. To earlier steps it is a
            constant.
    """
    program = Program()
    slots: dict[Hashable, int] = {}
    constants: Values = []
    backend = sources[0]._backend

    def slot_of(key: Hashable) -> int:
        return slots.setdefault(key, len(slots))

    program.sources = [slot_of(_id(x)) for x in sources]
    program.computed = {slot_of(_id(x)) for _, step in steps for x in step.outs}
    known = {*program.sources, *program.computed}

    def read(x: object, index: int, tracked: set[int]) -> Slot:
        key: Hashable = _id(x)
        if id(x) not in tracked or since.get(_id(x), 0) > index:
            key = "constant", key
        slot = slot_of(key)
        if slot not in known:
            known.add(slot)
            program.constants.append(slot)
            constants.append(x if isinstance(x, EmberTensor) else wrap(x, backend))
        return Slot(slot, not isinstance(x, EmberTensor))

    is_value = functools.partial(_is_value, backend=backend)
    for index, step in steps:
        link = functools.partial(read, index=index, tracked={id(x) for _, _, x in step.inputs})
        program.instructions.append(
            Instruction(
                step.op,
                tuple([_replaced(value, link, is_value) for value in step.args]),
                {name: _replaced(value, link, is_value) for name, value in step.kwargs.items()},
                tuple([slot_of(_id(x)) for x in step.outs]),
                step.single,
            )
        )
    target_ids = {id(x) for x in targets}
    program.targets = [read(x, _END, target_ids).number for x in targets]
    primals = [
        ops.zeros_like(x) if slot in program.computed else x
        for slot, x in zip(program.sources, sources, strict=True)
    ]
    tags = tuple([x._tag for x in (*primals, *constants)])
    program.key = _key(program, tags)
    return program, primals, constants


def _key(program: Program, tags: tuple[str, ...]) -> Hashable:
    """Return the structure of a program; None if a call or an argument is not hashable."""
    if any(step.op.key is None for step in program.instructions):
        return None
    code = tuple(
        [
            (step.op.key, _frozen(step.args), _frozen(step.kwargs), step.outs)
            for step in program.instructions
        ]
    )
    slots = tuple(program.sources), tuple(program.constants), tuple(program.targets)
    key = code, slots, tags
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _is_value(x: object, backend: str) -> bool:
    """Return whether x is a tensor, or an array of the program's framework."""
    return isinstance(x, (EmberTensor, runtime.LOADED[backend].ARRAY))


def _is_slot(x: object) -> bool:
    return type(x) is Slot


def _id(x: object) -> int:
    """Return the identity of a value: the id of its native array."""
    return id(getattr(x, "_data", x))


def _replaced(
    value: object, replace: Callable[..., object], chosen: Callable[[object], bool] = _is_slot
) -> object:
    """Return a nested argument with the chosen parts replaced."""
    if chosen(value):
        return replace(value)
    if type(value) is tuple or type(value) is list:
        return type(value)([_replaced(part, replace, chosen) for part in value])
    if type(value) is dict:
        return {name: _replaced(part, replace, chosen) for name, part in value.items()}
    return value


def _frozen(value: object) -> Hashable:
    """Return a nested argument as a part of a key."""
    if type(value) is Slot:
        return value
    if type(value) is tuple or type(value) is list:
        return (type(value), *[_frozen(part) for part in value])
    if type(value) is dict:
        return tuple([(name, _frozen(part)) for name, part in value.items()])
    if type(value) is slice:
        return (slice, value.start, value.stop, value.step)
    return (type(value), value)


class Procedure:
    """Function of a list of tensors that a tape records as one step, like an op.

    Args:
        name: Name for messages.
        key: Identity of the function for caches; None if it has none.
        backend: Backend of all tensors.
        function: The function. It must not record on tapes.
        vjps: Its VJP rule, for the backends that are differentiated by rules.
    """

    body = None

    def __init__(
        self,
        name: str,
        key: Hashable,
        backend: str,
        function: ValuesFunction,
        vjps: VJPRule | None = None,
    ) -> None:
        self.name = name
        self.key = None if key is None else (name, key)
        self.natives = {backend: function}
        self.plain: Callable[..., Values] = function
        self.vjps = vjps

    def __call__(self, values: Values) -> Values:
        """Return the results; record one step on the tapes that track a value."""
        tapes = recording.tapes()
        if not tapes:
            return self.plain(values)
        return cast(Values, record.call(self, (values,), {}, tapes))


class Capture:
    """Recorder of every op on a backend, whether its operands are tracked or not."""

    causal = None
    quick = None
    call = staticmethod(record.call)

    def __init__(self, backend: str) -> None:
        self._outer = recording.tapes()
        self.program = ProgramLog(backend)
        self.program.by_rules = runtime.load(backend).autodiff.ENGINE == "rules"

    def log(self, backend: str) -> Log:
        """Return the log."""
        return self.program

    def log_of(self, operands: Values) -> Log | None:
        """Return the log if an operand is on its backend; let the outer tapes watch parameters."""
        for x in operands:
            if x.trainable:
                for tape in self._outer:
                    tape.log_of([x])
        on_backend = any(x._backend == self.program.backend for x in operands)
        return self.program if on_backend else None


def capture(run: ValuesFunction, tensors: Values, backend: str) -> tuple[Program, Values, Values]:
    """Return the program of `run(tensors)`, its inputs (the tensors first) and its results.

    All values that `run` reads become inputs. Nothing is recorded on the open tapes.
    """
    recorder = Capture(backend)
    log = recorder.program
    for x in tensors:
        log.watch(x)
    with recording.only(recorder):
        results = run(tensors)
    steps = [(number, log.step(number)) for number in range(len(log.steps))]
    program, sources, constants = extract(steps, tensors, results, {})
    return program, [*sources, *constants], results
