"""Outputs and gradients of every kernel against float64, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from ember_ml.backend.kernel_table import TRITON
from tests.kernels.cases import CASES
from tests.kernels.comparing import cast, check, flat, gradients, is_float

LENGTHS = (1, 7, 63, 64, 65, 100)


def test_every_kernel_has_a_case():
    tested = {case.kernel.removeprefix("triton_") for case in CASES.values()}
    assert tested | {"long_conv"} == set(TRITON.values())  # test_long_conv.py


@pytest.mark.parametrize("name", CASES)
def test_float32(name):
    for length in LENGTHS:
        check(CASES[name], length, torch.float32)


LONG = {case.kernel: name for name, case in CASES.items() if case.grads}
"""One case of each kernel."""


@pytest.mark.parametrize("name", LONG.values())
def test_many_steps(name):
    check(CASES[name], 257, torch.float32)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.halves])
def test_bfloat16(name):
    check(CASES[name], 65, torch.bfloat16)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.higher])
def test_second_derivatives(name):
    """Gradients of gradients are those of plain ops."""
    case = CASES[name]
    narrow = cast(case.operands(3), torch.float32)
    wide = cast(narrow, torch.float64)
    results = []
    cotangents = [torch.randn_like(y) for y in flat(case.reference(*wide))]
    for run, operands in ((case.run, narrow), (case.reference, wide)):
        outputs = flat(run(*operands))
        first = gradients(outputs, operands, cotangents, create_graph=True)
        total = sum(g.double().square().sum() for g in first if g is not None)
        sources = [x for x in operands if is_float(x)]
        results.append(torch.autograd.grad(total, sources, allow_unused=True))
    for got, expected in zip(*results, strict=True):
        if got is not None and expected is not None:
            torch.testing.assert_close(got.double(), expected, rtol=1e-3, atol=1e-3)
