"""Gradients by running the program again inside the framework's own transform."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, cast

from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.extraction import Program, extract
from ember_ml.autodiff.fallback import check_tracing_error
from ember_ml.autodiff.procedure import Procedure
from ember_ml.autodiff.program import ProgramLog, Step
from ember_ml.autodiff.values import Values, like
from ember_ml.backend.interface import ReplayAutodiff

_CACHE_SIZE = 256
_WORTH_COMPILING = 8  # a compiler may take seconds; a training loop meets a program often


_live: weakref.WeakSet[ReplayLog] = weakref.WeakSet()


class ReplayLog(ProgramLog):
    """A program that is differentiated by running it inside the framework's `vjp`."""

    rebinds = True
    """Whether the targets are given the values of the second run."""

    def __init__(self, backend: str) -> None:
        super().__init__(backend)
        self._kept: Values = []
        _live.add(self)

    def gradient(
        self, given: Values, sources: Values, cotangents: Values
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target.

        The targets are given the values of the second run, so that the first is never computed
        where nobody reads another of its results.
        """
        targets = [like(self.values.get(id(x._data), x._data), x) for x in given]
        sources = [like(self.values[id(x._data)], x) for x in sources]
        needed, numbers = self.depending(sources)
        pairs = [
            (x, g)
            for x, g in zip(targets, cotangents, strict=True)
            if id(x._data) in needed and id(x._data) in self.values
        ]
        steps, reached = self._leading([x for x, _ in pairs], numbers)
        wanted = {id(x._data): x for x in sources if id(x._data) in reached}
        if not wanted:
            return [None] * len(sources)
        chosen = list(wanted.values()), [x for x, _ in pairs]
        program, primals, constants = extract(steps, *chosen, self.since)
        pull = _puller(program, self.backend)
        procedure = Procedure("gradient", program.key, self.backend, pull)
        results = procedure([*primals, *constants, *[g for _, g in pairs]])
        if self.rebinds:
            self._rebind(given, dict(zip([id(x._data) for x in chosen[1]], results, strict=False)))
        found = dict(zip(wanted, results[len(pairs) :], strict=True))
        return [found.get(id(x._data)) for x in sources]

    def _leading(
        self, targets: Values, numbers: Sequence[int]
    ) -> tuple[list[tuple[int, Step]], set[int]]:
        """Those of the steps that lead to the targets, and the values on the way."""
        reached = {id(x._data) for x in targets}
        chosen = []
        for number in reversed(numbers):
            step = self.step(number)
            if any(id(getattr(x, "_data", x)) in reached for x in step.outs):
                chosen.append((number, step))
                reached.update(id(x._data) for _, _, x in step.inputs)
        return chosen[::-1], reached

    def _rebind(self, targets: Values, computed: dict[int, EmberTensor]) -> None:
        """Give the targets the values of the second run."""
        for x in targets:
            known = self.values.get(id(x._data))
            if known is not None and id(known) in computed:
                value = computed[id(known)]
                for log in _live:
                    if id(x._data) in log.values:
                        log._kept.append(value)
                        log.values[id(value._data)] = log.values[id(x._data)]
                x._data = value._data


_pullers: OrderedDict[Any, tuple[int, Callable[[Values], Values]]] = OrderedDict()
"""A program's key -> how often it was met, and its function; the last ones met."""
_lock = threading.Lock()


def _puller(program: Program, backend: str) -> Callable[[Values], Values]:
    """A program's targets and gradients, as a function; compiled when it is met often."""
    if program.key is None:
        return _pull(program, backend, compiled=False)
    with _lock:
        count, pull = _pullers.pop(program.key, (0, None))
        count += 1
        if pull is None or count == _WORTH_COMPILING:
            pull = _pull(program, backend, compiled=count == _WORTH_COMPILING)
        _pullers[program.key] = count, pull
        if len(_pullers) > _CACHE_SIZE:
            _pullers.popitem(last=False)
    return pull


def _pull(program: Program, backend: str, *, compiled: bool) -> Callable[[Values], Values]:
    native = cast(ReplayAutodiff, runtime.load(backend).autodiff)
    count = len(program.sources)
    end = count + len(program.constants)

    def pull(*data: Any) -> list[Any]:
        constants = [wrap(part, backend) for part in data[count:end]]

        def forward(*primals: Any) -> list[Any]:
            values = program.run([wrap(part, backend) for part in primals], constants)
            return [x._data for x in values]

        values, grads = native.run_vjp(forward, data[:count], data[end:])
        return [*values, *grads]

    run = native.compile(pull) if compiled else pull

    def call(values: Values) -> Values:
        nonlocal run
        arrays = [x._data for x in values]
        try:
            results = run(*arrays)
        except Exception as error:
            if run is pull:
                raise
            check_tracing_error(error, native, "a gradient cannot be compiled and runs uncompiled")
            run = pull
            results = run(*arrays)
        return [wrap(part, backend) for part in results]

    return call
