"""A function's ops as a program: what it reads from elsewhere becomes an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml._core import recording, runtime
from ember_ml.autodiff import record
from ember_ml.autodiff.extraction import Program, extract
from ember_ml.autodiff.program import ProgramLog
from ember_ml.autodiff.values import Values


class Capture:
    """A recorder that writes down every op on a backend, whatever its operands."""

    causal = None
    quick = None

    def __init__(self, backend: str) -> None:
        self._outer = recording.tapes()
        self._log = ProgramLog(backend)
        self._log.by_rules = runtime.load(backend).autodiff.ENGINE == "rules"

    call = staticmethod(record.call)

    def log(self, backend: str) -> Any:
        """What was written down."""
        return self._log

    def log_of(self, operands: Values) -> Any:
        """The log, if it is of the operands' backend; parameters are shown to the outer tapes."""
        for x in operands:
            if x.trainable:
                for tape in self._outer:
                    tape.log_of([x])
        return self._log if any(x._backend == self._log.backend for x in operands) else None


def capture(
    run: Callable[[Values], Values], tensors: Values, backend: str
) -> tuple[Program, Values, Values]:
    """The program of run(tensors), all values that it reads (the tensors first), and its results.

    Nothing of it comes onto the open tapes.
    """
    recorder = Capture(backend)
    log = recorder.log(backend)
    for x in tensors:
        log.watch(x)
    with recording.only(recorder):
        results = run(tensors)
    steps = [(number, log.step(number)) for number in range(len(log.steps))]
    program, sources, constants = extract(steps, tensors, results, {})
    return program, [*sources, *constants], results
