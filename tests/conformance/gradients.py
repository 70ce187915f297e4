"""Gradients of rows of the conformance table."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

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


class NoDerivativeError(Exception):
    """The row is at a kink or a pole."""


def tensors_in(result: Any) -> list[EmberTensor]:
    """Return the tensors of an op's result through which gradients flow."""
    if isinstance(result, (tuple, list)):
        return [inner for part in result for inner in tensors_in(part)]
    if isinstance(result, EmberTensor) and result.dtype.kind in ("float", "complex"):
        return [result]
    return []


def values(case: Case, dtype: str) -> list[Any]:
    """Return the arguments: drawn operands, operands of fixed dtypes and plain values."""
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
        return array.astype(narrow).astype(dtype)  # the same values on every backend

    return [draw(part) for part in case.inputs]


def is_variable(part: Any) -> bool:
    return isinstance(part, Sample) and part.dtype is None


def variables(case: Case, args: list[Any]) -> list[Any]:
    """Return the arguments that are drawn in the tested dtype."""
    variables = []
    for part, arg in zip(case.inputs, args, strict=True):
        inner = zip(part, arg, strict=True) if isinstance(part, list) else [(part, arg)]
        variables += [value for sample, value in inner if is_variable(sample)]
    return variables


def rebuilt(case: Case, args: list[Any], replacements: list[Any]) -> list[Any]:
    """Return the arguments with the variables replaced."""
    values = iter(replacements)

    def build(part: Any, arg: Any) -> Any:
        if isinstance(part, list):
            return [build(*pair) for pair in zip(part, arg, strict=True)]
        return next(values) if is_variable(part) else arg

    return [build(*pair) for pair in zip(case.inputs, args, strict=True)]


def on_backend(case: Case, backend: str, dtype: str, arrays: list[Any]) -> list[Any]:
    """Return the arguments as tensors, with the given values of the variables."""
    kind = dtype if has_dtype(backend, dtype) else NARROW[dtype]
    tensors = [convert_to_tensor(array, dtype=kind) for array in arrays]
    fixed = [
        convert_to_tensor(arg) if isinstance(part, Sample) and part.dtype is not None else arg
        for part, arg in zip(case.inputs, values(case, dtype), strict=True)
    ]
    return rebuilt(case, fixed, tensors)


def compute(case: Case, args: list[Any]) -> list[EmberTensor]:
    """Return the results to differentiate; a unique measure of them if they are not unique."""
    operand = OPERANDS.get(case.key)
    if operand is not None:
        args = [operand(args[0]), *args[1:]]
    result = OPS[case.key].function(*args, **case.kwargs)
    measure = MEASURES.get(case.key)
    return tensors_in(result if measure is None else measure(result))


def weights(case: Case, shapes: list[tuple[int, ...]], kinds: list[str], salt: int) -> list[Any]:
    """Return cotangents or directions, the same for all backends."""
    rng = np.random.default_rng([salt, *case.label.encode()])
    return [
        rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if kind == "complex" else 0)
        for shape, kind in zip(shapes, kinds, strict=True)
    ]


def host(x: EmberTensor) -> Any:
    array = x.numpy()
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def gradients(case: Case, backend: str, dtype: str, arrays: list[Any] | None = None) -> Any:
    """Return the tape's gradients of a weighted sum of the results; None if none is floating."""
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
    """Return the gradients of the gradients' weighted sum; None if no result is floating."""
    with use_backend(backend), np.errstate(all="ignore"):
        args = on_backend(case, backend, dtype, variables(case, values(case, dtype)))
        sources = variables(case, args)
        with GradientTape() as outer:
            outer.watch(sources)
            with GradientTape() as inner:
                inner.watch(sources)
                outs = compute(case, args)
            if not outs:
                return None
            cotangents = weights(case, [x.shape for x in outs], [x.dtype.kind for x in outs], 1)
            first = inner.gradient(outs, sources, cotangents, unconnected_gradients="zero")
        directions = weights(case, [x.shape for x in first], [x.dtype.kind for x in first], 2)
        return outer.gradient(first, sources, directions, unconnected_gradients="zero")


def _dot(weight: Any, value: Any) -> float:
    with np.errstate(all="ignore"):  # infinities at a pole
        return float(np.sum(np.conj(weight) * value).real)


def results(case: Case, dtype: str, arrays: list[Any]) -> list[EmberTensor]:
    """Return the row's differentiable results on torch."""
    with use_backend("torch"), np.errstate(all="ignore"):
        return compute(case, on_backend(case, "torch", dtype, arrays))


def weighted_sum(case: Case, outs: list[EmberTensor]) -> float:
    """Return the sum of the results, weighted as for the gradients."""
    cotangents = weights(case, [x.shape for x in outs], [x.dtype.kind for x in outs], 1)
    return sum(_dot(w, host(x)) for w, x in zip(cotangents, outs, strict=True))


def moved(arrays: list[Any], directions: list[Any], step: float) -> list[Any]:
    return [x + step * v for x, v in zip(arrays, directions, strict=True)]


def difference(before: Any, middle: Any, after: Any) -> Any:
    """Return the central difference; raise at a kink or a pole."""
    with np.errstate(invalid="ignore"):
        earlier, later = (middle - before) / STEP, (after - middle) / STEP
        scale = 1.0 + np.abs(earlier) + np.abs(later)
        if not np.all(np.abs(earlier - later) <= 1e-3 * scale):
            raise NoDerivativeError("at a kink or a pole, where there is no derivative")
    return (after - before) / (2 * STEP)


@functools.lru_cache(maxsize=64)
def expected(index: int, dtype: str) -> Any:
    """Return torch's gradients in double precision, confirmed by central differences."""
    case = CASES[index]
    arrays = variables(case, values(case, dtype))
    out = gradients(case, "torch", dtype, arrays)
    if out is None:
        return None
    middle = results(case, dtype, arrays)
    if any(np.finfo(x.numpy().dtype).eps > 1e-10 for x in middle):
        return out  # the results have too few digits for differences
    filled = [np.zeros_like(x) if g is None else host(g) for g, x in zip(out, arrays, strict=True)]
    if not all(np.all(np.abs(g) < 1e5) for g in filled) and any((x == 0).any() for x in arrays):
        raise NoDerivativeError("at a pole")
    kinds = ["complex" if dtype.startswith("complex") else "float"] * len(arrays)
    directions = weights(case, [x.shape for x in arrays], kinds, 3)
    before, after = (results(case, dtype, moved(arrays, directions, at)) for at in (-STEP, STEP))
    want = difference(*[weighted_sum(case, outs) for outs in (before, middle, after)])
    got = sum(_dot(g, v) for g, v in zip(filled, directions, strict=True))
    size = sum(float(np.abs(g * v).sum()) for g, v in zip(filled, directions, strict=True))
    assert abs(got - want) <= 1e-5 * max(1.0, size), f"slope {got}, by differences {want}"
    return out


@functools.lru_cache(maxsize=64)
def expected_second(index: int, dtype: str) -> Any:
    """Return second derivatives by central differences of NumPy's first ones, in float64."""
    case = CASES[index]
    arrays = variables(case, values(case, dtype))
    kinds = ["complex" if dtype.startswith("complex") else "float"] * len(arrays)
    directions = weights(case, [x.shape for x in arrays], kinds, 2)
    sides = []
    for at in (-STEP, 0, STEP):
        out = gradients(case, "numpy", dtype, moved(arrays, directions, at))
        if out is None:
            return None
        sides.append(
            [np.zeros_like(x) if g is None else host(g) for g, x in zip(out, arrays, strict=True)]
        )
    return [difference(*column) for column in zip(*sides, strict=True)]


def compare(got: Any, want: Any, kind: str, factor: float = 1.0) -> None:
    tolerance = TOLERANCE[kind] * factor
    scale = max(1.0, float(np.abs(want).max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
