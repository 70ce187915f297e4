"""Timers in the table of ops: around native functions and VJP rules.

The paths of the dispatch stay as they are: a call finds a native function that measures itself.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.errors import ConcurrentUseError
from ember_ml._core.op import OPS, Op
from ember_ml.autodiff.rules import VJPRule
from ember_ml.autodiff.rules import load as load_rules
from ember_ml.autodiff.sweep import SweepLog
from ember_ml.training.profiling.events import OUTSIDE, Events, Key, Phase, Timer
from ember_ml.training.profiling.operations import Operations

Native: TypeAlias = Callable[..., Any]
Table: TypeAlias = dict[str, tuple[Native, str | None]]
"""Tag -> (native function, tag of its result)."""
GETITEM = "slicing.getitem"
"""Name of indexing with plain keys, which is not an op."""


class Meter:
    """Measures native functions and VJP rules.

    Args:
        backend: Backend whose functions are measured.
        events: Receives the times.
        operations: Counts the operations.
    """

    def __init__(self, backend: str, events: Events, operations: Operations) -> None:
        module = runtime.load(backend)
        profiling = module.profiling
        self.backend = backend
        self.tags = runtime.TAG_OF[backend].values()
        self.events = events
        self.operations = operations
        self._is_compiling = module.autodiff.is_compiling
        self._wait = profiling.wait
        self._untracked = profiling.untracked
        self._observer = None if profiling.observer is None else profiling.observer()
        self._thread = threading.get_ident()
        self._layers: dict[int, int] = {}  # id of a result of the forward pass -> its layer
        self._paused = False

    def native(self, op: Op, function: Native) -> Native:
        """Return a native function with a timer.

        Args:
            op: The op.
            function: Its native function.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._is_compiling() or self._paused or threading.get_ident() != self._thread:
                return function(*args, **kwargs)
            events = self.events
            is_forward = events.is_forward
            phase: Phase = "forward" if is_forward else "backward"
            key = Key(events.op or op.key, events.layer, phase)
            begun = events.begin()
            try:
                out = function(*args, **kwargs)
                self._wait(out)
            except BaseException:
                events.abandon(begun)
                raise
            if out is None:  # it leaves the call to the op's body, whose calls are measured
                events.abandon(begun)
                return None
            ended = events.end(begun, op.key, key)
            if is_forward:
                self._follow(op, function, args, kwargs, out, key)
            events.count_overhead(ended)
            return out

        return call

    def _follow(
        self,
        op: Op,
        function: Native,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
        key: Key,
    ) -> None:
        """Count the operations of a call, and arrange that its backward pass is measured."""
        self._paused = True
        try:
            with self._untracked():
                flops = self.operations.count(op, args, kwargs, out)
            self.events.totals[key].flops += flops
            if self._observer is not None:
                timer = Timer(self.events, op.key, key.layer)
                self._observer.follow(function, args, kwargs, out, timer)
            for part in out if isinstance(out, (list, tuple)) else (out,):
                self._layers[id(part)] = key.layer
        finally:
            self._paused = False

    def rule(self, op: Op, function: Native, *, is_native: bool) -> Native:
        """Return a VJP rule in which calls count as backward pass of the op.

        Args:
            op: The op.
            function: Function of the gradient, the result and the arguments.
            is_native: Whether it computes with native arrays itself, and is measured as a whole.
        """

        def call(g: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
            events = self.events
            if events.op is not None or threading.get_ident() != self._thread:
                return function(g, out, *args, **kwargs)
            first = out[0] if isinstance(out, (list, tuple)) else out
            layer = self._layers.get(id(getattr(first, "_data", first)), OUTSIDE)
            outer = events.layer
            events.op, events.layer = op.key, layer
            begun = events.begin() if is_native else None
            try:
                return function(g, out, *args, **kwargs)
            finally:
                if begun is not None:
                    events.end(begun, op.key, Key(op.key, layer, "backward"))
                events.op, events.layer = None, outer

        return call

    def sweep(self, function: Native) -> Native:
        """Return the reverse sweep over a program; its calls outside of rules add gradients up.

        Args:
            function: Method of `SweepLog`.
        """

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            if threading.get_ident() != self._thread:
                return function(*args)
            events = self.events
            before, events.differentiates = events.differentiates, True
            try:
                return function(*args)
            finally:
                events.differentiates = before

        return call


_running = threading.Lock()
"""Held while a profile runs: the table of ops belongs to the whole process."""


@contextlib.contextmanager
def timed(meter: Meter) -> Iterator[None]:
    """Measure the calls of a backend in this thread within the block."""
    if not _running.acquire(blocking=False):
        raise ConcurrentUseError(
            "profile: another profile is running in this process; profiles cannot be nested, and "
            "one thread can be profiled at a time"
        )
    try:
        with _replaced(meter):
            yield
    finally:
        _running.release()


@contextlib.contextmanager
def _replaced(meter: Meter) -> Iterator[None]:
    """Replace native functions, VJP rules and the reverse sweep with measured ones."""
    if runtime.load(meter.backend).autodiff.ENGINE != "graph":
        load_rules()
    with contextlib.ExitStack() as restored:
        for op in list(OPS.values()):
            if meter.backend in op.natives:
                for table in _tables(op):
                    restored.callback(_restore, table, _replace(meter, op, table))
            if op.vjps is not None:
                restored.callback(setattr, op, "vjps", op.vjps)
                op.vjps = _timed_rule(meter, op)
        readers, reader = runtime.READERS, runtime.READERS[meter.backend]
        restored.callback(readers.__setitem__, meter.backend, reader)
        readers[meter.backend] = meter.native(_Reader(), reader)  # type: ignore[arg-type]
        restored.callback(setattr, SweepLog, "gradient", SweepLog.gradient)
        SweepLog.gradient = meter.sweep(SweepLog.gradient)  # type: ignore[method-assign]
        yield


def _replace(meter: Meter, op: Op, table: Table) -> dict[str, Native]:
    """Replace the native functions in a table, and return them."""
    own = {tag: table[tag][0] for tag in meter.tags if tag in table}
    timed = {id(function): meter.native(op, function) for function in own.values()}
    for tag, function in own.items():
        table[tag] = timed[id(function)], table[tag][1]
    return own


def _restore(table: Table, own: dict[str, Native]) -> None:
    for tag, function in own.items():
        table[tag] = function, table[tag][1]  # calls may have added the tag of the result


class _Reader:
    """Entry of indexing with plain keys, as far as a meter needs it."""

    key = GETITEM
    family = "slicing"
    kind = "general"
    body = None


def _tables(op: Op) -> list[Table]:
    sides = (op.left, op.right)
    return [op.kernels, *(each for x in sides for each in (x.floats, x.small, x.wide))]


def _timed_rule(meter: Meter, op: Op) -> VJPRule:
    rule: VJPRule = op.vjps
    timed = VJPRule(
        tuple(
            None if part is None else meter.rule(op, part, is_native=False) for part in rule.parts
        ),
        None if rule.joint is None else meter.rule(op, rule.joint, is_native=False),
    )
    if rule.arithmetic is not None:
        timed.arithmetic = tuple(meter.rule(op, part, is_native=True) for part in rule.arithmetic)
    return timed
