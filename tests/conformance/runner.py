"""Run rows of the conformance table on a backend."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import OPS
from ember_ml._core.dtype import DTYPES, real_part
from ember_ml._core.tensor import EmberTensor
from tests.backends import has_dtype as has_dtype
from tests.conformance.table import Case, Sample

TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 3e-5,
    "float64": 1e-10,
    "complex64": 5e-5,
    "complex128": 1e-10,
}


def expected_dtype(case: Case, dtype: str, position: int = 0) -> str:
    """Return the dtype that the result must have."""
    rule = case.result[position] if isinstance(case.result, tuple) else case.result
    if callable(rule):
        return rule(dtype)
    lifted = OPS[case.key].rule.resolve(case.key, DTYPES[dtype])
    if rule == "same":
        return lifted.name
    if rule == "real":
        return real_part(lifted).name
    return rule


def _wide(array: Any, lift: bool) -> Any:
    """Return the values in the widest dtype of their kind; as floats if the op lifts integers."""
    if lift and array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind == "u":
        return array.astype(np.uint64) if array.dtype == np.uint64 else array.astype(np.int64)
    return array.astype(
        {"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128}[array.dtype.kind]
    )


@functools.lru_cache(maxsize=1000)  # the backends follow each other
def _drawn(case: Case, dtype: str) -> tuple[list[Any], list[Any]]:
    """Return the arrays of the samples, and the arguments of the reference."""
    rng = case.rng()

    def make(part: Any) -> tuple[Any, Any]:
        if isinstance(part, list):
            pairs = [make(inner) for inner in part]
            return [first for first, _ in pairs], [second for _, second in pairs]
        if not isinstance(part, Sample):
            return part, part
        array = part.draw(rng, dtype)
        return array, _wide(array, OPS[case.key].rule.lift and part.dtype is None)

    pairs = [make(part) for part in case.inputs]
    return [first for first, _ in pairs], [second for _, second in pairs]


def _tensors(part: Any, drawn: Any, dtype: str) -> Any:
    """Return an argument of the op: drawn arrays as tensors."""
    if isinstance(part, list):
        return [_tensors(inner, array, dtype) for inner, array in zip(part, drawn, strict=True)]
    if not isinstance(part, Sample):
        return part
    return convert_to_tensor(drawn, dtype=part.dtype or dtype)


def build(case: Case, dtype: str) -> list[Any]:
    """Return the arguments of the op on the active backend."""
    return _tensors(list(case.inputs), _drawn(case, dtype)[0], dtype)


@functools.lru_cache(maxsize=1000)
def _expected(case: Case, dtype: str) -> Any:
    """Return the results of the reference."""
    assert case.reference is not None, f"{case.label} has neither a reference nor a check"
    values = copy.deepcopy(_drawn(case, dtype)[1])  # a reference may write to its arguments
    return case.reference(*values, **case.kwargs)


def _flatten(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [inner for part in result for inner in _flatten(part)]
    return [result]


def _contents(args: Any) -> list[bytes]:
    """Return the contents of the tensors among the arguments."""
    tensors = [x for x in _flatten(args) if isinstance(x, EmberTensor)]
    return [runtime.LOADED[x.backend].to_portable(x.native).tobytes() for x in tensors]


def _compare(case: Case, got: EmberTensor, want: Any, dtype: str) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    assert got.dtype.name == dtype, f"dtype {got.dtype}, expected {dtype}"
    values = runtime.LOADED[got.backend].to_portable(got.native)
    if dtype == "bool" or DTYPES[dtype].is_integer:
        if not np.array_equal(values, want.astype(dtype)):
            np.testing.assert_array_equal(values, want.astype(dtype))
        return
    tolerance = TOLERANCE[dtype] * case.rtol
    limit = np.finfo(np.float32 if dtype == "bfloat16" else dtype).max
    if want.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            want = np.where(np.abs(want) > float(limit), np.sign(want) * np.inf, want)
    with np.errstate(all="ignore"):
        is_close = np.abs(values - want) < tolerance * (1.0 + np.abs(want))
    if not is_close.all():  # also for NaN and infinities, which this slower function compares
        np.testing.assert_allclose(values, want, rtol=tolerance, atol=tolerance, equal_nan=True)


def run(case: Case, backend: str, dtype: str) -> None:
    """Compute the row on the active backend in `dtype`, and compare with the reference."""
    args, values = build(case, dtype), _drawn(case, dtype)[1]
    before = _contents(args)
    with np.errstate(all="ignore"):
        got = OPS[case.key].function(*args, **case.kwargs)
        assert _contents(args) == before, "an operand was modified"
        for tensor in _flatten(got):
            if isinstance(tensor, EmberTensor):
                assert tensor.backend == backend
                assert tensor._tag == runtime.TAG_OF[backend][tensor.native.dtype]
        if case.check is not None:
            case.check(got, *values, **case.kwargs)
            return
        want = _expected(case, dtype)
    if not isinstance(want, (tuple, list)):
        want, got = [want], [got]
    results, wanted = _flatten(got), _flatten(want)
    assert len(results) == len(wanted)
    for position, (result, expected) in enumerate(zip(results, wanted, strict=True)):
        at = min(position, len(case.result) - 1) if isinstance(case.result, tuple) else 0
        _compare(case, result, expected, expected_dtype(case, dtype, at))
