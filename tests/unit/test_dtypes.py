"""Dtypes: one vocabulary, one promotion table, weak scalars, the same on every backend."""

from __future__ import annotations

import itertools
import pickle
import warnings
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import ops
from ember_ml._core.convert import as_dtype
from ember_ml._core.dtype import DTYPES, EmberDType
from tests.backends import has_dtype
from tests.conformance.table import ALL, COMPLEXES, FLOATS, INTEGERS

SCALARS: dict[type, Any] = {bool: True, int: 2, float: 2.0, complex: 2j}
REAL = tuple(name for name in ALL if name not in COMPLEXES)


def promoted(first: str, second: str) -> str | None:
    """Return the common dtype: NumPy's for integers and bools, torch's if one is a float."""
    if any(name in FLOATS + COMPLEXES for name in (first, second)):
        known = ["uint8" if name in INTEGERS[4:] else name for name in (first, second)]
        return str(torch.promote_types(*(getattr(torch, name) for name in known)))[6:]
    common = np.promote_types(first, second).name
    return None if common == "float64" else common


def pairs(backend: str, names: tuple[str, ...] = ALL) -> list[tuple[str, str]]:
    """Return every pair of dtypes of a backend."""
    return list(itertools.product([name for name in names if has_dtype(backend, name)], repeat=2))


def lifted(name: str | None) -> str | None:
    """Return the dtype of a quotient."""
    return "float32" if name == "bool" or name in INTEGERS else name


PROMOTING = {
    "add": (ops.add, lambda name: name),
    "where": (lambda x, y: ops.where(ops.asarray([True, False]), x, y), lambda name: name),
    "concat": (lambda x, y: ops.concat([x, y]), lambda name: name),
    "divide": (ops.divide, lifted),
    "equal": (ops.equal, lambda name: name and "bool"),
    "result_type": (lambda x, y: ops.zeros(1, dtype=ops.result_type(x, y)), lambda name: name),
}


@pytest.mark.parametrize("name", PROMOTING)
def test_two_tensors_promote_by_the_table(name: str, backend: str) -> None:
    function, kind = PROMOTING[name]
    wrong = []
    for first, second in pairs(backend):
        want = kind(promoted(first, second))
        x, y = ops.ones(2, dtype=first), ops.ones(2, dtype=second)
        try:
            got = function(x, y).dtype.name
        except TypeError:
            got = None
        if got != want:
            wrong.append(f"{first}, {second}: {got}, expected {want}")
    assert not wrong, "\n".join(wrong)


def test_comparison_of_real_dtypes_promotes_by_the_table(backend: str) -> None:
    for first, second in pairs(backend, REAL):
        if promoted(first, second) is not None:
            out = ops.less(ops.zeros(2, dtype=first), ops.ones(2, dtype=second))
            assert out.dtype == "bool"
            assert out.tolist() == [True, True]


@pytest.mark.parametrize("signed", INTEGERS[:4])
def test_uint64_with_a_signed_integer_has_no_common_dtype(signed: str, backend: str) -> None:
    if not has_dtype(backend, "uint64"):
        with pytest.raises(TypeError, match=f"the {backend} backend has no uint64"):
            ops.ones(2, dtype="uint64")
        return
    with pytest.raises(TypeError, match="no common integer dtype"):
        ops.add(ops.ones(2, dtype="uint64"), ops.ones(2, dtype=signed))


def weak(name: str, scalar: type) -> str:
    """Return the dtype of an op of a tensor and a Python scalar."""
    dtype = DTYPES[name]
    if scalar is bool or dtype.is_complex:
        return name
    if scalar is int:
        return "int64" if name == "bool" else name
    if scalar is float:
        return name if dtype.is_floating else "float32"
    return "complex128" if name == "float64" else "complex64"


@pytest.mark.parametrize("scalar", SCALARS)
def test_python_scalars_are_weak(scalar: type, backend: str) -> None:
    value = SCALARS[scalar]
    for name in filter(lambda name: has_dtype(backend, name), ALL):
        x = ops.ones(2, dtype=name)
        for out in (ops.add(x, value), ops.add(value, x)):
            assert out.dtype == weak(name, scalar), (name, out.dtype)
            want = True if name == "bool" and scalar is bool else 1 + value
            assert out.tolist() == [want, want]
        assert ops.divide(x, value).dtype == lifted(weak(name, scalar))
        assert ops.result_type(x, value) == weak(name, scalar)


def test_an_integer_that_does_not_fit_raises(backend: str) -> None:
    for name, value in (("int8", 128), ("uint8", -1), ("uint8", 256), ("int64", 2**63)):
        with pytest.raises(OverflowError, match=f"does not fit {name}"):
            ops.add(ops.ones(2, dtype=name), value)


def test_dtypes_of_every_framework_are_understood() -> None:
    for name, dtype in DTYPES.items():
        assert as_dtype(name) is dtype
        assert as_dtype(getattr(torch, name)) is dtype
        assert as_dtype(f"torch.{name}") is dtype
        if name != "bfloat16":
            assert as_dtype(np.dtype(name)) is dtype
            assert as_dtype(np.dtype(name).type) is dtype
        if name != "complex128":
            assert as_dtype(getattr(mx, name if name != "bool" else "bool_")) is dtype
    assert [as_dtype(python) for python in SCALARS] == ["bool", "int64", "float32", "complex64"]


@pytest.mark.parametrize("value", ["float33", "", None, object(), 3, list, np.dtype("O")])
def test_invalid_dtypes_raise(value: Any) -> None:
    with pytest.raises(TypeError, match="dtype"):
        as_dtype(value)


def test_dtypes_compare_with_anything() -> None:
    float32 = DTYPES["float32"]
    assert float32 == "float32"
    assert float32 != "float64"
    assert float32 != DTYPES["float64"]
    assert float32 is not None
    for other in (None, object(), 3, float32.name.encode()):
        assert float32 != other
        assert (float32 == other) is False
    assert {float32: 1}["float32"] == 1
    assert pickle.loads(pickle.dumps(float32)) is float32
    assert (str(float32), repr(float32), float32.itemsize) == ("float32", "ember_ml.float32", 4)


def test_finfo_agrees_with_the_frameworks(backend: str) -> None:
    for name in FLOATS:
        limits, want = ops.finfo(name), torch.finfo(getattr(torch, name))
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(limits, field) == getattr(want, field), (name, field)
        assert limits.dtype is DTYPES[name]
    assert ops.finfo("complex64") == ops.finfo(np.float32) == ops.finfo(torch.float32)
    assert ops.finfo("complex128").dtype == "float64"
    assert ops.finfo(ops.ones(2)).bits == 32
    with pytest.raises(TypeError, match="iinfo"):
        ops.finfo("int32")


def test_iinfo_agrees_with_numpy(backend: str) -> None:
    for name in INTEGERS:
        limits, want = ops.iinfo(name), np.iinfo(name)
        assert (limits.bits, limits.min, limits.max) == (want.bits, want.min, want.max)
    assert ops.iinfo(ops.ones(2, dtype="int8")).max == 127
    for name in ("float32", "bool"):
        with pytest.raises(TypeError, match="finfo"):
            ops.iinfo(name)


def test_isdtype_knows_the_standards_kinds() -> None:
    kinds = {
        "bool": ("bool",),
        "signed integer": INTEGERS[:4],
        "unsigned integer": INTEGERS[4:],
        "integral": INTEGERS,
        "real floating": FLOATS,
        "complex floating": COMPLEXES,
        "numeric": (*INTEGERS, *FLOATS, *COMPLEXES),
    }
    for kind, names in kinds.items():
        assert tuple(name for name in ALL if ops.isdtype(name, kind)) == names
    assert ops.isdtype(np.float32, ("bool", torch.float32))
    assert not ops.isdtype("int8", DTYPES["int16"])
    with pytest.raises(ValueError, match="kind must be a dtype or one of"):
        ops.isdtype("int8", "whole")


def test_can_cast_follows_promotion(backend: str) -> None:
    for first, second in itertools.product(ALL, repeat=2):
        assert ops.can_cast(first, second) == (promoted(first, second) == second)
    assert ops.can_cast(ops.ones(2, dtype="int8"), "int16")


def test_result_type_takes_tensors_dtypes_and_scalars(backend: str) -> None:
    assert ops.result_type("int8", torch.uint8, ops.ones(1, dtype="int16")) == "int16"
    assert ops.result_type("float16", 2.0, 1) == "float16"
    assert ops.result_type(1, 2.5) == "float32"
    with pytest.raises(ValueError, match="at least one"):
        ops.result_type()


def test_cast_takes_a_value_then_a_dtype(backend: str) -> None:
    x = ops.ones(2, dtype="float16")
    assert ops.cast(255.0, x.dtype).item() == 255.0
    for name in filter(lambda name: has_dtype(backend, name) and name != "bool", ALL):
        out = ops.cast(100.0, name)
        assert (out.dtype, out.shape, out.item()) == (name, (), 100)
        assert ops.cast(x, name).dtype == name
    assert ops.cast([1, 2], "float32").tolist() == [1.0, 2.0]
    if has_dtype(backend, "float64"):
        assert ops.cast(0.1, "float64").item() == 0.1


def test_astype_does_not_drop_imaginary_parts(backend: str) -> None:
    z = ops.asarray([1 + 2j, 0j])
    for name in ("float32", "int64"):
        with pytest.raises(TypeError, match="complex"):
            ops.astype(z, name)
    assert ops.astype(z, "bool").tolist() == [True, False]


def test_astype_of_nan_and_infinity_warns_of_nothing(backend: str) -> None:
    with warnings.catch_warnings(action="error"):
        out = ops.astype(ops.asarray([np.nan, np.inf, 3.7]), "int32")
        assert out.tolist()[2] == 3
        assert ops.astype(ops.asarray([1e30]), "float16").tolist() == [np.inf]


def test_astype_copies_unless_told_not_to(backend: str) -> None:
    x = ops.ones(3)
    assert ops.astype(x, "float32", copy=False).native is x.native
    assert ops.astype(x, "float32").tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="no device"):
        ops.astype(x, "float32", device="abacus")


def test_every_dtype_of_a_backend_can_be_made(backend: str) -> None:
    for name in ALL:
        dtype = DTYPES[name]
        if not has_dtype(backend, name):
            with pytest.raises(TypeError, match=f"has no {name}"):
                ops.zeros(2, dtype=name)
            continue
        made: dict[str, Any] = {
            "zeros": ops.zeros(2, dtype=dtype),
            "ones": ops.ones(2, dtype=dtype),
            "full": ops.full(2, 1, dtype=dtype),
            "eye": ops.eye(2, dtype=dtype),
            "tri": ops.tri(2, dtype=dtype),
            "arange": ops.arange(2, dtype=dtype),
            "linspace": ops.linspace(0, 1, 2, dtype=dtype),
            "asarray": ops.asarray([0, 1], dtype=dtype),
            "full_like": ops.full_like(ops.ones(2), 1, dtype=dtype),
        }
        for function, x in made.items():
            assert x.dtype is dtype, function
        for function in ("arange", "linspace", "asarray"):
            assert made[function].astype("bool").tolist() == [False, True], function


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_exact_at_both_ends(name: str, backend: str) -> None:
    if not has_dtype(backend, name):
        with pytest.raises(TypeError, match=f"the {backend} backend has no {name}"):
            ops.asarray([0], dtype=name)
        return
    low, high = ops.iinfo(name).min, ops.iinfo(name).max
    assert ops.asarray([low, high], dtype=name).tolist() == [low, high]
    assert ops.full(2, high, dtype=name).tolist() == [high, high]
    assert ops.arange(high - 2, high, dtype=name).tolist() == [high - 2, high - 1]
    assert ops.asarray(high, dtype=name).item() == high


def test_emberdtype_properties() -> None:
    kinds = {
        name: (dtype.is_integer, dtype.is_floating, dtype.is_complex)
        for name, dtype in DTYPES.items()
    }
    assert kinds["bool"] == (False, False, False)
    assert kinds["uint8"] == kinds["int64"] == (True, False, False)
    assert kinds["bfloat16"] == (False, True, False)
    assert kinds["complex64"] == (False, False, True)
    assert all(isinstance(dtype, EmberDType) for dtype in DTYPES.values())
