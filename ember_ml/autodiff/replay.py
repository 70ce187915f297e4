"""Gradients by running the recorded program again inside the framework's `vjp`."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, cast

from ember_ml._core import recording, runtime
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.tensor import Tensor, wrap
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.extraction import Program, ValuesFunction, extract
from ember_ml.autodiff.fallback import check_tracing_error
from ember_ml.autodiff.program import ProgramLog, Step
from ember_ml.autodiff.record import Scope
from ember_ml.autodiff.values import Values, like

if TYPE_CHECKING:
    from ember_ml.backend.interface import ReplayAutodiff

_CACHE_SIZE = 256
_COMPILE_AFTER = 8  # runs; compilation may take seconds, and pays off in a training loop

_live: weakref.WeakSet[ReplayLog] = weakref.WeakSet()


class ReplayLog(ProgramLog):
    """Program that is differentiated by the framework's `vjp`."""

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self._native = cast("ReplayAutodiff", runtime.load(backend).autodiff)
        self._alive: Values = []
        _live.add(self)

    def gradient(self, targets: Values, sources: Values, cotangents: Values) -> list[Tensor | None]:
        """Return the gradients of the sources, None where no path leads to a target.

        The targets get the values of the second run, so that a lazy framework computes the first
        run only if another of its results is read.
        """
        recorded = [like(self.values.get(id(x._data), x._data), x) for x in targets]
        sources = [like(self.values[id(x._data)], x) for x in sources]
        dependent, numbers = self.dependents(sources)
        pairs: dict[int, tuple[Tensor, Tensor]] = {}
        for x, g in zip(recorded, cotangents, strict=True):
            key = id(x._data)
            if key in dependent and key in self.values:  # MLX ignores a second cotangent of a value
                pairs[key] = (x, pairs[key][1] + g) if key in pairs else (x, g)
        outputs, given = [x for x, _ in pairs.values()], [g for _, g in pairs.values()]
        steps, reached = self._leading_to(outputs, numbers)
        connected = {id(x._data): x for x in sources if id(x._data) in reached}
        if not connected:
            return [None] * len(sources)
        program, primals, constants = extract(steps, list(connected.values()), outputs, self.since)
        if recording.tapes() or self._native.differentiates_by_rules():
            parts = _sweep(program, primals, constants, given)
        else:
            try:
                results = _vjp(program, self.backend)([*primals, *constants, *given])
            except UnsupportedOpError:
                parts = _sweep(program, primals, constants, given)
            else:
                parts = results[len(pairs) :]
                if self.rebinds:
                    self._rebind(targets, dict(zip(map(_id, outputs), results, strict=False)))
        grads = dict(zip(connected, parts, strict=True))
        return [grads.get(id(x._data)) for x in sources]

    def _leading_to(
        self, targets: Values, numbers: Sequence[int]
    ) -> tuple[list[tuple[int, Step]], set[int]]:
        """Return the steps that lead to the targets, and the ids of the values on the way."""
        reached = {id(x._data) for x in targets}
        steps = []
        for number in reversed(numbers):
            step = self.step(number)
            if any(id(getattr(x, "_data", x)) in reached for x in step.outs):
                steps.append((number, step))
                reached.update(id(x._data) for _, _, x in step.inputs)
        return steps[::-1], reached

    def _rebind(self, targets: Values, computed: dict[int, Tensor]) -> None:
        """Give the targets the values of the second run."""
        for x in targets:
            known = self.values.get(id(x._data))
            if known is not None and id(known) in computed:
                value = computed[id(known)]
                for log in _live:
                    if id(x._data) in log.values:
                        log._alive.append(value)
                        log.values[id(value._data)] = log.values[id(x._data)]
                x._data = value._data


def _sweep(program: Program, primals: Values, constants: Values, cotangents: Values) -> Values:
    """Return the gradients of the primals by VJP rules, recorded on the open tapes."""
    with Scope(primals) as scope:
        targets = program.run(scope.sources, constants, recorded=True)
    return scope.gradient(targets, cotangents)


def _id(x: Tensor) -> int:
    return id(x._data)


_cache: OrderedDict[Hashable, tuple[int, ValuesFunction]] = OrderedDict()
"""Key of a program -> (number of runs, its VJP); least recently used first."""
_lock = threading.Lock()


def _vjp(program: Program, backend: str) -> ValuesFunction:
    """Return the VJP of a program, compiled if the program runs often.

    It maps the sources, constants and cotangents to the targets and gradients.
    """
    if program.key is None:
        return _build_vjp(program, backend, compiled=False)
    with _lock:
        count, vjp = _cache.pop(program.key, (0, None))
        count += 1
        if vjp is None or count == _COMPILE_AFTER:
            vjp = _build_vjp(program, backend, compiled=count == _COMPILE_AFTER)
        _cache[program.key] = count, vjp
        if len(_cache) > _CACHE_SIZE:
            _cache.popitem(last=False)
    return vjp


def _build_vjp(program: Program, backend: str, *, compiled: bool) -> ValuesFunction:
    native = cast("ReplayAutodiff", runtime.load(backend).autodiff)
    count = len(program.sources)
    end = count + len(program.constants)

    def vjp(*data: NativeArray) -> list[NativeArray]:
        constants = [wrap(part, backend) for part in data[count:end]]

        def forward(*primals: NativeArray) -> list[NativeArray]:
            values = program.run([wrap(part, backend) for part in primals], constants)
            return [x._data for x in values]

        values, grads = native.run_vjp(forward, data[:count], data[end:])
        return [*values, *grads]

    run = native.compile(vjp) if compiled else vjp

    def call(values: Values) -> Values:
        nonlocal run
        arrays = [x._data for x in values]
        try:
            results = run(*arrays)
        except Exception as error:
            if run is vjp:
                raise
            check_tracing_error(error, native, "a gradient cannot be compiled and runs uncompiled")
            run = vjp
            results = run(*arrays)
        return [wrap(part, backend) for part in results]

    return call
