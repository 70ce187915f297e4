"""A part of a recorded program, made a function that holds no values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import recording, runtime
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff import record
from ember_ml.autodiff.program import Step
from ember_ml.autodiff.values import Values

_END = 2**63  # after all steps


class Slot(NamedTuple):
    """The place of a tensor, or of a native array (in an index)."""

    number: int
    native: bool


class Instruction(NamedTuple):
    """A call with slots for tensors."""

    op: Any
    args: Any
    kwargs: Any
    outs: tuple[int, ...]
    single: bool


class Program:
    """A function of the sources and of all other values that its steps read.

    Attributes:
        sources: their slots. A source that is itself a result of a step stands for a zero that is
            added to that result.
        constants: the slots of the other values that go in.
        key: the structure, if it can be told: programs of one key differ in their values alone.
    """

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.sources: list[int] = []
        self.constants: list[int] = []
        self.targets: list[int] = []
        self.made: set[int] = set()
        self.key: Any = None

    def run(self, sources: Values, constants: Values, *, recorded: bool = False) -> Values:
        """The targets; the calls go on the open tapes if they are to be recorded."""
        values: dict[int, Any] = dict(zip(self.constants, constants, strict=True))
        added: dict[int, EmberTensor] = {}
        for slot, x in zip(self.sources, sources, strict=True):
            (added if slot in self.made else values)[slot] = x

        def read(slot: Slot) -> Any:
            return values[slot.number]._data if slot.native else values[slot.number]

        for step in self.instructions:
            args, kwargs = _mapped(step.args, read), _mapped(step.kwargs, read)
            if recorded:
                out = record.call(step.op, args, kwargs, recording.tapes())
            else:
                out = step.op.plain(*args, **kwargs)
            for slot, x in zip(step.outs, (out,) if step.single else out, strict=True):
                values[slot] = x + added[slot] if slot in added else x
        return [values[slot] for slot in self.targets]


def extract(
    steps: list[tuple[int, Step]], sources: Values, targets: Values, since: dict[int, int]
) -> tuple[Program, Values, Values]:
    """The program of the numbered steps, the values of its sources, and of its constants.

    `since` says from which step on a watched value counts; before that it was a constant.
    """
    program = Program()
    slots: dict[Any, int] = {}
    constants: Values = []
    home = sources[0]._backend

    def slot_of(key: Any) -> int:
        return slots.setdefault(key, len(slots))

    program.sources = [slot_of(_id(x)) for x in sources]
    program.made = {slot_of(_id(x)) for _, step in steps for x in step.outs}
    entered = {*program.sources, *program.made}

    def read(x: Any, index: int, tracked: set[int]) -> Slot:
        key: Any = _id(x)
        if id(x) not in tracked or since.get(key, 0) > index:
            key = "constant", key
        slot = slot_of(key)
        if slot not in entered:
            entered.add(slot)
            program.constants.append(slot)
            constants.append(x if isinstance(x, EmberTensor) else wrap(x, home))
        return Slot(slot, not isinstance(x, EmberTensor))

    chosen = functools.partial(_is_value, backend=home)
    for index, step in steps:
        link = functools.partial(read, index=index, tracked={id(x) for _, _, x in step.inputs})
        program.instructions.append(
            Instruction(
                step.op,
                tuple(_mapped(step.args, link, chosen)),
                _mapped(step.kwargs, link, chosen),
                tuple([slot_of(_id(x)) for x in step.outs]),
                step.single,
            )
        )
    every = {id(x) for x in targets}
    program.targets = [read(x, _END, every).number for x in targets]
    primals = [
        ops.zeros_like(x) if slot in program.made else x
        for slot, x in zip(program.sources, sources, strict=True)
    ]
    tags = tuple([x._tag for x in (*primals, *constants)])
    program.key = _key(program, tags)
    return program, primals, constants


def _key(program: Program, tags: tuple[str, ...]) -> Any:
    """The structure of a program; None where a call or an argument cannot be part of a key."""
    if any(step.op.key is None for step in program.instructions):
        return None
    code = tuple(
        [
            (step.op.key, _frozen(step.args), _frozen(step.kwargs), step.outs)
            for step in program.instructions
        ]
    )
    places = tuple(program.sources), tuple(program.constants), tuple(program.targets)
    key = code, places, tags
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _is_value(x: Any, backend: str) -> bool:
    """Whether it is a tensor or an array of the program's framework; others are plain data."""
    return isinstance(x, (EmberTensor, runtime.LOADED[backend].ARRAY))


def _is_slot(x: Any) -> bool:
    return type(x) is Slot


def _id(x: Any) -> int:
    """What a value is known by."""
    return id(getattr(x, "_data", x))


def _mapped(
    value: Any, replace: Callable[[Any], Any], chosen: Callable[[Any], bool] = _is_slot
) -> Any:
    """Nested arguments with the chosen parts replaced."""
    if chosen(value):
        return replace(value)
    if type(value) is tuple or type(value) is list:
        return type(value)([_mapped(part, replace, chosen) for part in value])
    if type(value) is dict:
        return {name: _mapped(part, replace, chosen) for name, part in value.items()}
    return value


def _frozen(value: Any) -> Any:
    """Nested arguments as a part of a key."""
    if type(value) is Slot:
        return value
    if type(value) is tuple or type(value) is list:
        return (type(value), *[_frozen(part) for part in value])
    if type(value) is dict:
        return tuple([(name, _frozen(part)) for name, part in value.items()])
    if type(value) is slice:
        return (slice, value.start, value.stop, value.step)
    return (type(value), value)
