"""Each C kernel against torch in float64: results and gradients."""

import numpy as np
import pytest

from ember_ml import _native
from ember_ml.backend.native_long_convolution import MOST_LENGTH
from ember_ml.backend.numpy import long_convolution
from tests.unit.native.cases import CASES, SIZES, check, operands
from tests.unit.native.conftest import supported_levels

CASE_NAMES = sorted(CASES)


def layouts(x):
    """Yield the same values in other memory layouts."""
    yield np.asfortranarray(x)
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    if x.ndim > 2:
        yield np.ascontiguousarray(np.swapaxes(x, 1, 2)).swapaxes(1, 2)
        yield np.ascontiguousarray(np.swapaxes(x, 0, 1)).swapaxes(0, 1)
    read_only = x.copy()
    read_only.setflags(write=False)
    yield read_only
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    unaligned[...] = x
    yield unaligned


@pytest.mark.parametrize("name", CASE_NAMES)
def test_sizes_and_dtypes(every_size, name):
    for n in SIZES:
        for dtype in ("float32", "float64"):
            check(CASES[name], [x.astype(dtype) for x in operands(CASES[name], n)])


@pytest.mark.parametrize("name", ["long_conv", "long_conv_more_taps", "gated_long_conv"])
def test_longest_filters(every_size, name):
    """The longest sequence of the kernel, and the first one for FFTs."""
    for n in (MOST_LENGTH, MOST_LENGTH + 1):
        check(CASES[name], operands(CASES[name], n))


@pytest.mark.parametrize("threads", [1, 3])
def test_gates_of_long_sequences(every_size, threads):
    """Kernels of the gates, for filters by FFT."""
    every_size.setattr(long_convolution, "_DIRECT", 0)
    every_size.setattr(_native, "threads", threads)
    for name in ("gated_long_conv", "gated_long_conv_masked"):
        for n in (1, 7, 65):
            check(CASES[name], operands(CASES[name], n))


@pytest.mark.parametrize("name", CASE_NAMES)
def test_layouts(every_size, name):
    first, *others = operands(CASES[name], 33)
    for array in layouts(first):
        check(CASES[name], [array, *others])
    check(CASES[name], [np.broadcast_to(first[:1], first.shape), *others])


@pytest.mark.parametrize("threads", [2, 4])
def test_threads(every_size, threads):
    every_size.setattr(_native, "threads", threads)
    for case in CASES.values():
        for n in (1, 2, 65):
            check(case, operands(case, n))


@pytest.mark.parametrize("level", supported_levels())
def test_instruction_sets(every_size, level):
    every_size.setattr(_native, "library", _native._open(level))
    for case in CASES.values():
        for n in (5, 70):
            check(case, [x.astype("float32") for x in operands(case, n)])


def test_without_kernels():
    with _native.switched_off():
        for case in CASES.values():
            for n in (1, 20):
                check(case, operands(case, n))


@pytest.mark.parametrize("name", CASE_NAMES)
def test_small_arrays_use_the_same_numbers(name):
    check(CASES[name], operands(CASES[name], 40))
