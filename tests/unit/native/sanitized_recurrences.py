"""Run the kernels of recurrences of a library built with sanitizers: python ... LIBRARY."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from ember_ml import GradientTape, _native, ops, use_backend
from ember_ml._native import frame as frames
from ember_ml.backend import native_cells, native_liquid, native_synapses
from ember_ml.backend.numpy.native import frame
from ember_ml.nn import tensor
from tests.unit.native.recurrence_cases import CASES


def ops_with_gradients(name: str, arrays: list) -> None:
    """Run an op of the NumPy backend and its gradient."""
    operands = [None if x is None else tensor.array(x) for x in arrays]
    sources = [x for x in operands if x is not None and x.dtype.kind == "float"]
    with GradientTape() as tape:
        tape.watch(sources)
        outs = getattr(ops, CASES[name].op)(*operands, **CASES[name].options)
    tape.gradient(outs, sources)


def cells(name: str, arrays: list) -> None:
    """Run the kernels of a cell on NumPy arrays, forward and backward."""
    access = frame(*[x for x in arrays if x is not None and x.dtype.kind == "f"])
    op = CASES[name].op
    if op == "synapses":
        *operands, sources, targets = arrays
        out = native_synapses.forward(access, operands, sources, targets, 4)
        native_synapses.adjoint(access, operands, sources, targets, 4, out)
    elif op == "liquid":
        out, saved = native_liquid.liquid(access, *arrays)
        native_liquid.liquid_adjoint(access, arrays, saved, out)
    elif op == "closed_form":
        out, saved = native_liquid.closed_form(access, arrays, True)
        native_liquid.closed_form_adjoint(access, arrays, True, saved, out)
    elif op == "lstm":
        bias = arrays[5] if len(arrays) > 5 else None
        outs, saved = native_cells.lstm(access, *arrays[:5], bias)
        native_cells.lstm_adjoint(access, arrays[0], *arrays[3:5], saved, outs)
    else:
        biases = arrays[4:] if len(arrays) > 4 else [None, None]
        outs, saved = native_cells.gru(access, *arrays[:4], *biases)
        native_cells.gru_adjoint(access, arrays[0], *arrays[2:4], saved, outs)


def main() -> None:
    """Run all cases."""
    _native.library = ctypes.CDLL(sys.argv[1])
    frames.GRAIN = 1
    with use_backend("numpy"):
        for name, case in CASES.items():
            run = cells if case.op in _CELLS else ops_with_gradients
            for batch, time, threads in ((1, 1, 1), (3, 7, 4), (9, 33, 2)):
                _native.threads = threads
                for dtype in (np.float32, np.float64):
                    arrays = case.operands(np.random.default_rng(0), batch, time)
                    real = lambda x: x is not None and x.dtype == np.float64
                    run(name, [x.astype(dtype) if real(x) else x for x in arrays])
    sys.stdout.write("clean\n")


_CELLS = ("closed_form", "gru", "liquid", "lstm", "synapses")

if __name__ == "__main__":
    main()
