"""Gradients of every op in the table, on every backend."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import OPS
from ember_ml.autodiff import grad, rules
from ember_ml.autodiff.constants import CONSTANT
from ember_ml.backend import BACKENDS
from tests.conformance import gradients
from tests.conformance.runner import has_dtype
from tests.conformance.test_ops import CASES

PER_OP = 6
PER_OP_COMPLEX = 3
PER_OP_SECOND = 2


def rows(dtype: str, limit: int, least: float = 0.0, most: float = 1e4) -> dict[str, list[int]]:
    """Return some rows of each op with operands of the dtype and sizes from least to most."""
    indices: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(CASES):
        if "seed" in OPS[case.key].names and "seed" not in case.kwargs:
            continue  # a different draw each time
        if dtype not in case.dtypes:
            continue
        operands = gradients.variables(case, gradients.values(case, dtype))
        if is_ordinary(operands, least, most) and not is_singular(case.key, operands):
            indices[case.key].append(index)
    return {key: _spread(found, limit) for key, found in indices.items()}


def is_ordinary(arrays: list[Any], least: float, most: float) -> bool:
    """Return whether there are operands, all of them away from special values."""
    for array in arrays:
        size = np.abs(array)
        if not np.all(((size == 0) & (least == 0)) | ((size > 1e-4) & (size < most))):
            return False
    return bool(arrays)


def is_singular(key: str, arrays: list[Any]) -> bool:
    """Return whether a matrix is rank deficient: factors and inverses have no derivative there."""
    matrix = arrays[0]
    if not key.startswith("linearalg.") or matrix.ndim < 2 or not matrix.size:
        return False
    return bool(np.any(np.linalg.matrix_rank(matrix, tol=1e-3) < min(matrix.shape[-2:])))


def _spread(indices: list[int], limit: int) -> list[int]:
    """Return at most `limit` of the indices, from first to last: neighbors are similar."""
    if len(indices) <= limit:
        return indices
    return [indices[at * (len(indices) - 1) // (limit - 1)] for at in range(limit)]


FIRST = rows("float64", PER_OP)
COMPLEX = rows("complex128", PER_OP_COMPLEX)
SECOND = {
    key: indices
    for key, indices in rows("float64", PER_OP_SECOND, least=1e-4, most=50).items()
    if key not in CONSTANT
}


def check_rows(check: Callable[..., None], indices: list[int], *args: str) -> None:
    """Check each row; skip the test if no row has a derivative."""
    failures, skipped = [], []
    for index in indices:
        try:
            check(index, *args)
        except gradients.NoDerivativeError as reason:
            skipped.append(f"{CASES[index].label}: {reason}")
        except Exception as error:
            failures.append(f"{CASES[index].label}: {type(error).__name__}: {error}")
    assert not failures, "\n".join(failures)
    if len(skipped) == len(indices):
        pytest.skip("; ".join(skipped))


def check_first(index: int, backend: str, dtype: str) -> None:
    case = CASES[index]
    kind = dtype if has_dtype(backend, dtype) else gradients.NARROW[dtype]
    got = gradients.gradients(case, backend, dtype)
    if case.key in CONSTANT:
        assert got is None or all(g is None for g in got), f"{case.key} is declared constant"
        return
    want = gradients.expected(index, dtype)  # checked by finite differences; None: no gradient
    assert (got is None) == (want is None), f"{got} where the reference is {want}"
    if got is None:  # the results are not floating
        return
    composed = OPS[case.key].body is not None
    assert composed or any(g is not None for g in got), f"{case.key}: no gradient, no reason"
    for ours, reference in zip(got, want, strict=True):
        assert (ours is None) == (reference is None), f"{ours} where the reference is {reference}"
        if ours is not None:
            assert ours.shape == reference.shape
            assert ours.dtype.name == kind, f"{ours.dtype} instead of {kind}"
            gradients.compare(gradients.host(ours), gradients.host(reference), kind, case.rtol)


def check_second(index: int, backend: str, dtype: str) -> None:
    case = CASES[index]
    kind = dtype if has_dtype(backend, dtype) else gradients.NARROW[dtype]
    got = gradients.second(case, backend, dtype)
    want = gradients.expected_second(index, dtype)
    assert (got is None) == (want is None), f"{got} where the reference is {want}"
    for ours, reference in zip(got or (), want or (), strict=True):
        gradients.compare(gradients.host(ours), reference, kind, 50 * case.rtol)


# The backends of an op run in succession and share its expected gradients.
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("key", FIRST)
def test_gradient(key: str, backend: str) -> None:
    check_rows(check_first, FIRST[key], backend, "float64")


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("key", COMPLEX)
def test_complex_gradient(key: str, backend: str) -> None:
    check_rows(check_first, COMPLEX[key], backend, "complex128")


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("key", SECOND)
def test_second_gradient(key: str, backend: str) -> None:
    check_rows(check_second, SECOND[key], backend, "float64")


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("key", sorted(CONSTANT.keys() & FIRST.keys()))
def test_constant_ops_stop_gradients(key: str, backend: str) -> None:
    """The framework's own gradients agree with the tape's, which is None."""
    case = CASES[FIRST[key][0]]
    arrays = gradients.variables(case, gradients.values(case, "float64"))
    sources = [convert_to_tensor(array, dtype="float32") for array in arrays]

    def total(*xs: Any) -> Any:
        args = gradients.rebuilt(case, gradients.values(case, "float64"), list(xs))
        outs = [ops.sum(x * x) for x in gradients.compute(case, args)]
        return sum(outs, ops.sum(xs[0]))

    first, *others = grad(total, range(len(sources)))(*sources)
    assert np.all(first.numpy() == 1)
    assert all(np.all(g.numpy() == 0) for g in others)


def test_rules_mirror_their_ops() -> None:
    """A rule takes g, the result, and the parameters of its op, with the same defaults."""
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
