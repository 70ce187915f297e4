"""The conformance table: rows with the inputs of an op and its expected results.

A row is `case("elementwise.logaddexp", real(2, 3), real(3), reference=np.logaddexp)`. Inputs are
samples (drawn for each dtype) or plain values. The reference gets the same values, rounded to the
tested dtype, as float64, complex128 or int64 arrays.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ember_ml._core.dispatch import OPS

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
ALL = ("bool", *INTEGERS, *FLOATS, *COMPLEXES)


@dataclass(frozen=True)
class Sample:
    """Distribution of an operand, in the tested dtype or a fixed one."""

    shape: tuple[int, ...]
    low: float = -4.0
    high: float = 4.0
    dtype: str | None = None  # a fixed dtype, for indices and masks
    special: bool = False  # includes NaN, infinities and signed zeros
    transposed: bool = False  # not contiguous
    transform: Callable[[Any], Any] | None = None  # applied to the drawn array

    def draw(self, rng: np.random.Generator, dtype: str) -> Any:
        """Return the values as an array that holds any value of `dtype` (bfloat16 as float32)."""
        name = self.dtype or dtype
        shape = self.shape[::-1] if self.transposed else self.shape
        array = _draw(rng, shape, name, self.low, self.high)
        if self.special and array.dtype.kind in "fc" and array.size:
            values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
            flat = array.reshape(-1)
            flat[: len(values)] = values[: flat.size]
        if self.transposed:
            array = array.T
        return array if self.transform is None else self.transform(array).astype(array.dtype)


def _draw(
    rng: np.random.Generator, shape: tuple[int, ...], name: str, low: float, high: float
) -> Any:
    if name == "bool":
        return rng.random(shape) < 0.5
    if name in INTEGERS:
        low = max(low, 0) if name.startswith("u") else low
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(name)
    real = np.asarray(rng.uniform(low, high, shape))
    if name in COMPLEXES:
        return (real + 1j * rng.uniform(low, high, shape)).astype(name)
    if name == "bfloat16":
        bits = np.asarray(real, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return real.astype(name)


def real(*shape: int, low: float = -4.0, high: float = 4.0, **options: Any) -> Sample:
    """Return a sample between low and high, in the tested dtype."""
    return Sample(shape, low, high, **options)


def positive(*shape: int, low: float = 0.5, high: float = 4.0, **options: Any) -> Sample:
    """Return a sample of positive numbers, in the tested dtype."""
    return Sample(shape, low, high, **options)


def integers(
    *shape: int, low: int = 0, high: int = 3, dtype: str = "int64", **options: Any
) -> Sample:
    """Return a sample of integers from low to high, both included, in a fixed dtype."""
    return Sample(shape, low, high, dtype=dtype, **options)


def mask(*shape: int) -> Sample:
    """Return a sample of bools."""
    return Sample(shape, dtype="bool")


@dataclass(frozen=True, eq=False)  # the hash is that of the object
class Case:
    """Row of the table."""

    key: str
    inputs: tuple[Any, ...]
    kwargs: dict[str, Any]
    reference: Callable[..., Any] | None
    dtypes: tuple[str, ...]
    result: str | Callable[[str], str] | tuple[Any, ...]
    rtol: float
    check: Callable[..., None] | None

    @functools.cached_property
    def label(self) -> str:
        """Name of the row in test reports."""
        shapes = "-".join(
            "x".join(map(str, part.shape)) or "0d"
            for part in self.inputs
            if isinstance(part, Sample)
        )
        plain = [str(part) for part in self.inputs if not isinstance(part, (Sample, list))]
        plain += [f"{name}={value}" for name, value in self.kwargs.items()]
        return "-".join(filter(None, [self.key, shapes, ",".join(plain)])).replace(" ", "")

    def rng(self) -> np.random.Generator:
        """Return the row's own generator, which makes rows independent of each other."""
        return np.random.default_rng(zlib.crc32(self.label.encode()))


CASES: list[Case] = []


def takes(key: str) -> tuple[str, ...]:
    """Return the dtypes that an op computes in, or casts to a float."""
    rule = OPS[key].rule
    kinds = rule.kinds | ({"bool", "int", "uint"} if rule.lift else set())
    by_kind = {
        "bool": ("bool",),
        "int": INTEGERS[:4],
        "uint": INTEGERS[4:],
        "float": FLOATS,
        "complex": COMPLEXES,
    }
    return tuple(
        name
        for kind in ("bool", "int", "uint", "float", "complex")
        if kind in kinds
        for name in by_kind[kind]
    )


def case(
    key: str,
    *inputs: Any,
    reference: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] | None = None,
    result: str | Callable[[str], str] | tuple[Any, ...] = "same",
    rtol: float = 1.0,
    check: Callable[..., None] | None = None,
    **kwargs: Any,
) -> None:
    """Add a row.

    Args:
        key: Op, as in `OPS`: "family.name".
        inputs: Samples, lists of samples, and plain values, in the order of the op's parameters.
        reference: Called with the values of the samples and the same kwargs; returns the expected
            array, or a tuple of arrays.
        dtypes: Dtypes to test on each backend that has them. Default: all that the op's rule takes.
        result: Dtype of the result: "same" (as the operands, floats where the op lifts integers),
            "real" (the component dtype of a complex result), "bool", a dtype's name, or a
            function of the tested dtype; a tuple for several results.
        rtol: Factor of the dtype's usual tolerance.
        check: Called as check(results, *values) instead of a comparison, for ops whose results are
            not unique.
        kwargs: Keyword arguments of the op.
    """
    CASES.append(Case(key, inputs, kwargs, reference, dtypes or takes(key), result, rtol, check))


@functools.cache
def rows_by_op() -> dict[str, list[Case]]:
    """Return the rows of each op, by key."""
    rows: dict[str, list[Case]] = {}
    for case in CASES:
        rows.setdefault(case.key, []).append(case)
    return rows


SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (7,), (2, 3), (2, 0, 3), (3, 1, 2))
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((7,), (7,)),
    ((2, 3), (3,)),
    ((), (2, 3)),
    ((4, 1, 3), (2, 1)),
    ((0, 3), (1, 3)),
    ((1,), (0,)),
)


def _floats(key: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the tested dtypes that have NaN and infinities."""
    return tuple(name for name in options.get("dtypes") or takes(key) if name in FLOATS)


def unary_cases(
    key: str, reference: Callable[..., Any], low: float = -4.0, high: float = 4.0, **options: Any
) -> None:
    """Add rows for an op of one tensor: many shapes, not contiguous, special values."""
    special = options.pop("special", True) and bool(_floats(key, options))
    for shape in SHAPES:
        case(key, real(*shape, low=low, high=high), reference=reference, **options)
    case(key, real(3, 4, low=low, high=high, transposed=True), reference=reference, **options)
    if special:
        options["dtypes"] = _floats(key, options)
        case(key, real(11, low=low, high=high, special=True), reference=reference, **options)


def binary_cases(
    key: str, reference: Callable[..., Any], low: float = -4.0, high: float = 4.0, **options: Any
) -> None:
    """Add rows for an op of two tensors: broadcasting, not contiguous, special values."""
    special = options.pop("special", True) and bool(_floats(key, options))
    for first, second in PAIRS:
        case(
            key,
            real(*first, low=low, high=high),
            real(*second, low=low, high=high),
            reference=reference,
            **options,
        )
    case(
        key,
        real(3, 4, low=low, high=high, transposed=True),
        real(3, 4, low=low, high=high),
        reference=reference,
        **options,
    )
    if special:
        options["dtypes"] = _floats(key, options)
        case(key, real(5, 1, special=True), real(5, special=True), reference=reference, **options)


def axis_cases(
    key: str, reference: Callable[..., Any], shape: tuple[int, ...] = (2, 3, 4), **options: Any
) -> None:
    """Add rows for an op along one axis: each axis, from both ends, and length 1."""
    for axis in range(-len(shape), len(shape)):
        case(key, real(*shape), reference=reference, axis=axis, **options)
    case(key, real(1), reference=reference, axis=0, **options)
    case(key, real(3, 4, transposed=True), reference=reference, axis=1, **options)
