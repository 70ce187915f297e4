"""Runs a row of the conformance table for its gradients."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import OPS
from ember_ml._core.tensor import EmberTensor
from tests.conformance.measures import MEASURES, OPERANDS
from tests.conformance.runner import has_dtype
from tests.conformance.table import CASES, Case, Sample

STEP = 1e-6
TOLERANCE = {"float32": 2e-3, "complex64": 2e-3, "float64": 2e-7, "complex128": 2e-7}
NARROW = {"float64": "float32", "complex128": "complex64"}


def tensors_in(result: Any) -> list[EmberTensor]:
    """The tensors of an op's result through which gradients flow."""
    if isinstance(result, (tuple, list)):
        return [inner for part in result for inner in tensors_in(part)]
    if isinstance(result, EmberTensor) and result.dtype.kind in ("float", "complex"):
        return [result]
    return []


def values(case: Case, dtype: str) -> list[Any]:
    """The drawn operands, those of fixed dtypes and the plain arguments beside them."""
    rng = case.rng()
    narrow = NARROW[dtype]

    def draw(part: Any) -> Any:
        if isinstance(part, list):
            return [draw(inner) for inner in part]
        if not isinstance(part, Sample):
            return part
        array = part.draw(rng, dtype)
        if part.dtype is not None:
            return array
        return array.astype(narrow).astype(dtype)  # every backend gets the same values

    return [draw(part) for part in case.inputs]


def is_variable(part: Any) -> bool:
    return isinstance(part, Sample) and part.dtype is None


def variables(case: Case, args: list[Any]) -> list[Any]:
    """Of the arguments, those that are drawn in the tested dtype."""
    found = []
    for part, arg in zip(case.inputs, args, strict=True):
        inner = zip(part, arg, strict=True) if isinstance(part, list) else [(part, arg)]
        found += [value for sample, value in inner if is_variable(sample)]
    return found


def rebuilt(case: Case, args: list[Any], replacements: list[Any]) -> list[Any]:
    """The arguments with the variables replaced."""
    given = iter(replacements)

    def build(part: Any, arg: Any) -> Any:
        if isinstance(part, list):
            return [build(*pair) for pair in zip(part, arg, strict=True)]
        return next(given) if is_variable(part) else arg

    return [build(*pair) for pair in zip(case.inputs, args, strict=True)]


def on_backend(case: Case, backend: str, dtype: str, arrays: list[Any]) -> list[Any]:
    """The arguments as tensors; the variables have the given values."""
    kind = dtype if has_dtype(backend, dtype) else NARROW[dtype]
    tensors = [convert_to_tensor(array, dtype=kind) for array in arrays]
    fixed = [
        convert_to_tensor(arg) if isinstance(part, Sample) and part.dtype is not None else arg
        for part, arg in zip(case.inputs, values(case, dtype), strict=True)
    ]
    return rebuilt(case, fixed, tensors)


def compute(case: Case, args: list[Any]) -> list[EmberTensor]:
    """The results that are differentiated; where they are not unique, something that is."""
    operand = OPERANDS.get(case.key)
    if operand is not None:
        args = [operand(args[0]), *args[1:]]
    result = OPS[case.key].function(*args, **case.kwargs)
    measure = MEASURES.get(case.key)
    return tensors_in(result if measure is None else measure(result))


def weights(case: Case, shapes: list[tuple[int, ...]], kinds: list[str], salt: int) -> list[Any]:
    """Cotangents or directions, the same for all backends."""
    rng = np.random.default_rng([salt, *case.label.encode()])
    return [
        rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if kind == "complex" else 0)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def host(x: EmberTensor) -> Any:
    array = x.numpy()
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def gradients(case: Case, backend: str, dtype: str, arrays: list[Any] | None = None) -> Any:
    """The gradients of a weighted sum of the row's results, as the tape gives them."""
    with use_backend(backend), np.errstate(all="ignore"):
        arrays = variables(case, values(case, dtype)) if arrays is None else arrays
        args = on_backend(case, backend, dtype, arrays)
        sources = variables(case, args)
        if not sources:
            return None
        with GradientTape() as tape:
            tape.watch(sources)
            outs = compute(case, args)
        if not outs:
            return None
        cotangents = weights(case, [x.shape for x in outs], [x.dtype.kind for x in outs], 1)
        return tape.gradient(outs, sources, cotangents)


def second(case: Case, backend: str, dtype: str) -> Any:
    """The gradients of the gradients' weighted sum."""
    with use_backend(backend), np.errstate(all="ignore"):
        args = on_backend(case, backend, dtype, variables(case, values(case, dtype)))
        sources = variables(case, args)
        with GradientTape() as outer:
            outer.watch(sources)
            with GradientTape() as inner:
                inner.watch(sources)
                outs = compute(case, args)
            cotangents = weights(case, [x.shape for x in outs], [x.dtype.kind for x in outs], 1)
            first = inner.gradient(outs, sources, cotangents, unconnected_gradients="zero")
        directions = weights(case, [x.shape for x in first], [x.dtype.kind for x in first], 2)
        return outer.gradient(first, sources, directions, unconnected_gradients="zero")


def _dot(weight: Any, value: Any) -> float:
    with np.errstate(all="ignore"):  # infinities at a pole
        return float(np.sum(np.conj(weight) * value).real)


def weighted_sum(case: Case, dtype: str, arrays: list[Any], backend: str = "torch") -> float:
    """The row's results, weighted as for the gradients, and summed."""
    with use_backend(backend), np.errstate(all="ignore"):
        outs = compute(case, on_backend(case, backend, dtype, arrays))
    cotangents = weights(case, [x.shape for x in outs], [x.dtype.kind for x in outs], 1)
    return sum(_dot(w, host(x)) for w, x in zip(cotangents, outs, strict=True))


def moved(arrays: list[Any], directions: list[Any], step: float) -> list[Any]:
    return [x + step * v for x, v in zip(arrays, directions, strict=True)]


def difference(before: Any, middle: Any, after: Any) -> Any:
    """The central difference; a skip where there is a kink or a pole, and so no derivative."""
    with np.errstate(invalid="ignore"):
        earlier, later = (middle - before) / STEP, (after - middle) / STEP
        scale = 1.0 + np.abs(earlier) + np.abs(later)
        if not np.all(np.abs(earlier - later) <= 1e-3 * scale):
            pytest.skip("the row is at a kink or a pole, where there is no derivative")
    return (after - before) / (2 * STEP)


def is_narrow(case: Case, dtype: str) -> bool:
    """Whether the row's results have fewer digits than its operands: no place for differences."""
    with use_backend("torch"), np.errstate(all="ignore"):
        outs = compute(case, on_backend(case, "torch", dtype, variables(case, values(case, dtype))))
    return any(np.finfo(x.numpy().dtype).eps > 1e-10 for x in outs)


@functools.lru_cache(maxsize=64)
def expected(index: int, dtype: str) -> Any:
    """torch's gradients of a row in double precision, confirmed by central differences."""
    case = CASES[index]
    found = gradients(case, "torch", dtype)
    if found is None or is_narrow(case, dtype):
        return found
    arrays = variables(case, values(case, dtype))
    filled = [
        np.zeros_like(x) if g is None else host(g) for g, x in zip(found, arrays, strict=True)
    ]
    if not all(np.all(np.abs(g) < 1e5) for g in filled) and any((x == 0).any() for x in arrays):
        pytest.skip("the row is at a pole")
    kinds = ["complex" if dtype.startswith("complex") else "float"] * len(arrays)
    directions = weights(case, [x.shape for x in arrays], kinds, 3)
    sums = [weighted_sum(case, dtype, moved(arrays, directions, at)) for at in (-STEP, 0, STEP)]
    want = difference(*sums)
    got = sum(_dot(g, v) for g, v in zip(filled, directions, strict=True))
    size = sum(float(np.abs(g * v).sum()) for g, v in zip(filled, directions, strict=True))
    assert abs(got - want) <= 1e-5 * max(1.0, size), f"slope {got}, by differences {want}"
    return found


@functools.lru_cache(maxsize=64)
def expected_second(index: int, dtype: str) -> Any:
    """Second derivatives by central differences of the first ones (NumPy, double precision)."""
    case = CASES[index]
    arrays = variables(case, values(case, dtype))
    kinds = ["complex" if dtype.startswith("complex") else "float"] * len(arrays)
    directions = weights(case, [x.shape for x in arrays], kinds, 2)
    sides = []
    for at in (-STEP, 0, STEP):
        found = gradients(case, "numpy", dtype, moved(arrays, directions, at))
        sides.append(
            [np.zeros_like(x) if g is None else host(g) for g, x in zip(found, arrays, strict=True)]
        )
    return [difference(*column) for column in zip(*sides, strict=True)]


def compare(got: Any, want: Any, kind: str, factor: float = 1.0) -> None:
    tolerance = TOLERANCE[kind] * factor
    scale = max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
