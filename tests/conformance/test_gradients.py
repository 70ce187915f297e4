"""Every op's gradients, on every backend, from the same table as its values."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from ember_ml._core.dispatch import OPS
from ember_ml.autodiff.constants import CONSTANT
from tests.conformance import gradients
from tests.conformance.runner import has_dtype
from tests.conformance.table import CASES
from tests.conformance.test_ops import FOLDER as FOLDER  # fills the table

PER_OP = 6
PER_OP_COMPLEX = 3
PER_OP_SECOND = 2


def rows(dtype: str, limit: int, least: float = 0.0, most: float = 1e4) -> list[int]:
    """Rows with operands of the dtype whose sizes are from least to most; some of each op."""
    found: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(CASES):
        if "seed" in OPS[case.key].names and "seed" not in case.kwargs:
            continue  # drawn anew each time
        if dtype not in case.dtypes:
            continue
        operands = gradients.variables(case, gradients.values(case, dtype))
        if is_ordinary(operands, least, most) and not is_singular(case.key, operands):
            found[case.key].append(index)
    return [index for indices in found.values() for index in _spread(indices, limit)]


def is_ordinary(arrays: list[Any], least: float, most: float) -> bool:
    """Whether there are operands, of numbers that are neither special nor close to being so."""
    for array in arrays:
        size = np.abs(array)
        if not np.all(((size == 0) & (least == 0)) | ((size > 1e-4) & (size < most))):
            return False
    return bool(arrays)


def is_singular(key: str, arrays: list[Any]) -> bool:
    """Whether a matrix lacks rank, where factors and inverses have no derivatives."""
    matrix = arrays[0]
    if not key.startswith("linearalg.") or matrix.ndim < 2 or not matrix.size:
        return False
    return bool(np.any(np.linalg.matrix_rank(matrix, tol=1e-3) < min(matrix.shape[-2:])))


def _spread(indices: list[int], limit: int) -> list[int]:
    """At most `limit` of them, from first to last: neighbours are much alike."""
    if len(indices) <= limit:
        return indices
    return [indices[at * (len(indices) - 1) // (limit - 1)] for at in range(limit)]


def name(index: object) -> str:
    return CASES[index].label if isinstance(index, int) else str(index)


def check_first(index: int, backend: str, dtype: str) -> None:
    case = CASES[index]
    kind = dtype if has_dtype(backend, dtype) else gradients.NARROW[dtype]
    found = gradients.gradients(case, backend, dtype)
    if found is None:
        return
    if case.key in CONSTANT:
        assert all(g is None for g in found), f"{case.key} is declared to be a constant"
        return
    want = gradients.expected(index, dtype)  # checked by differences: None stands for no slope
    composed = OPS[case.key].body is not None
    assert composed or any(g is not None for g in found), f"{case.key}: no gradient, no reason"
    for got, one in zip(found, want, strict=True):
        assert (got is None) == (one is None), f"{got} where torch has {one}"
        if got is not None:
            assert got.shape == one.shape
            assert got.dtype.name == kind, f"{got.dtype} in the place of {kind}"
            gradients.compare(gradients.host(got), gradients.host(one), kind, case.rtol)


@pytest.mark.parametrize("index", rows("float64", PER_OP), ids=name)
def test_gradient(index: int, backend: str) -> None:
    check_first(index, backend, "float64")


@pytest.mark.parametrize("index", rows("complex128", PER_OP_COMPLEX), ids=name)
def test_complex_gradient(index: int, backend: str) -> None:
    check_first(index, backend, "complex128")


@pytest.mark.parametrize("index", rows("float64", PER_OP_SECOND, least=1e-4, most=50), ids=name)
def test_second_gradient(index: int, backend: str) -> None:
    case = CASES[index]
    if case.key in CONSTANT or gradients.gradients(case, backend, "float64") is None:
        return
    kind = "float64" if has_dtype(backend, "float64") else "float32"
    found = gradients.second(case, backend, "float64")
    want = gradients.expected_second(index, "float64")
    for got, one in zip(found, want, strict=True):
        gradients.compare(gradients.host(got), one, kind, 50 * case.rtol)


def test_rules_mirror_their_ops() -> None:
    """A rule takes g, the result, and then what its op takes, under the same names and defaults."""
    import inspect

    from ember_ml.autodiff import rules

    rules.load()
    wrong = []
    for key, op in OPS.items():
        parts = () if op.vjps is None else (op.vjps.joint, *op.vjps.parts)
        for part in filter(None, parts):
            got = list(inspect.signature(part).parameters.values())[2:]
            want = list(op.signature.parameters.values())
            if [(p.name, p.kind, p.default) for p in got] != [
                (p.name, p.kind, p.default) for p in want
            ]:
                wrong.append(key)
    assert not wrong, f"rules with another signature than their ops: {wrong}"
