"""Run the kernels of recurrences; `sanitized.py` loads a library built with sanitizers."""

from __future__ import annotations

import numpy as np

from ember_ml import GradientTape, _native, ops, use_backend
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


def run_all() -> None:
    """Run all cases with several numbers of threads."""
    with use_backend("numpy"):
        for name, case in CASES.items():
            for batch, time, threads in ((1, 1, 1), (3, 7, 4), (9, 33, 2)):
                _native.threads = threads
                for dtype in (np.float32, np.float64):
                    arrays = case.operands(np.random.default_rng(0), batch, time)
                    real = lambda x: x is not None and x.dtype == np.float64
                    ops_with_gradients(name, [x.astype(dtype) if real(x) else x for x in arrays])
