"""Gradients by running the program again inside the framework's own transform."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ember_ml._core import runtime
from ember_ml._core.tensor import EmberTensor, wrap
from ember_ml.autodiff.extraction import Program, extract
from ember_ml.autodiff.procedure import Procedure
from ember_ml.autodiff.program import ProgramLog, Step

Values = list[EmberTensor]
_CACHE_SIZE = 256


class ReplayLog(ProgramLog):
    """A program that is differentiated by running it inside the framework's `vjp`."""

    def gradient(
        self, targets: Values, sources: Values, cotangents: Values, retain: bool = False
    ) -> list[EmberTensor | None]:
        """The gradients of the sources; None where no path leads to a target.

        The targets are given the values of the second run, so that the first is never computed
        where nobody reads another of its results.
        """
        needed, steps = self.depending(sources)
        pairs = [
            (x, g)
            for x, g in zip(targets, cotangents, strict=True)
            if id(x._data) in needed and id(x._data) in self.values
        ]
        steps, reached = _leading([x for x, _ in pairs], steps)
        keys = [id(x._data) for x in sources]
        wanted = {key: x for key, x in zip(keys, sources, strict=True) if key in reached & needed}
        if not wanted:
            return [None] * len(sources)
        made, primals, constants = extract(steps, list(wanted.values()), [x for x, _ in pairs])
        pull = _puller(made, self.backend)
        procedure = Procedure(("gradient", made.key), self.backend, pull)
        results = procedure([*primals, *constants, *[g for _, g in pairs]])
        for (x, _), value in zip(pairs, results, strict=False):
            self.values[id(value._data)] = self.values[id(x._data)]
            x._data = value._data
        found = dict(zip(wanted, results[len(pairs) :], strict=True))
        return [found.get(key) for key in keys]


def _leading(targets: Values, steps: list[Step]) -> tuple[list[Step], set[int]]:
    """The steps that lead to the targets, and the values on the way."""
    reached = {id(x._data) for x in targets}
    chosen = []
    for step in reversed(steps):
        if any(id(getattr(x, "_data", x)) in reached for x in step.outs):
            chosen.append(step)
            reached.update(id(x._data) for _, _, x in step.inputs)
    return chosen[::-1], reached


_seen: OrderedDict[Any, Callable[[Values], Values]] = OrderedDict()
_lock = threading.Lock()


def _puller(program: Program, backend: str) -> Callable[[Values], Values]:
    """A program's targets and gradients, as a function; compiled when it is met again."""
    if program.key is None:
        return _pull(program, backend, compiled=False)
    with _lock:
        known = _seen.pop(program.key, None)
        pull = _pull(program, backend, compiled=program.key in _met) if known is None else known
        if program.key in _met:
            _seen[program.key] = pull
        _met[program.key] = None
        for cache in (_seen, _met):
            if len(cache) > _CACHE_SIZE:
                cache.popitem(last=False)
    return pull


_met: OrderedDict[Any, None] = OrderedDict()


def _pull(program: Program, backend: str, *, compiled: bool) -> Callable[[Values], Values]:
    native = runtime.load(backend).autodiff
    count = len(program.sources)
    end = count + len(program.constants)

    def pull(*data: Any) -> list[Any]:
        constants = [wrap(part, backend) for part in data[count:end]]

        def forward(*primals: Any) -> list[Any]:
            values = program.run([wrap(part, backend) for part in primals], constants)
            return [x._data for x in values]

        values, grads = native.pull(forward, data[:count], data[end:])
        return [*values, *grads]

    run = native.compile(pull) if compiled else pull

    def call(values: Values) -> Values:
        return [wrap(part, backend) for part in run(*[x._data for x in values])]

    return call
