"""Run every kernel of a library that was built with sanitizers: python sanitized.py LIBRARY."""

import ctypes
import sys

from ember_ml import _native
from ember_ml._native import calls
from ember_ml.backend.native_long_convolution import MOST_LENGTH
from ember_ml.backend.numpy import kernel_calls
from tests.unit.native import sanitized_recurrences
from tests.unit.native.cases import CASES, operands, run

LONG = (1, 7, 65, MOST_LENGTH, MOST_LENGTH + 1)


def main():
    _native.library = ctypes.CDLL(sys.argv[1])
    kernel_calls.SMALL = calls.GRAIN = 1
    for threads in (1, 3):
        _native.threads = threads
        for name, case in CASES.items():
            for n in LONG if "long_conv" in name else (1, 7, 65):
                for dtype in ("float32", "float64"):
                    run(case, [x.astype(dtype) for x in operands(case, n)])
    sanitized_recurrences.run_all()
    sys.stdout.write("clean\n")


if __name__ == "__main__":
    main()
