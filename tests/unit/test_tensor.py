"""The tensor: operators, conversions, protocols, methods."""

from __future__ import annotations

import copy
import gc
import math
import operator
import pickle
import weakref

import numpy as np
import pytest
import torch

from ember_ml import ops
from ember_ml._core.methods import TensorMethods
from ember_ml.backend import BACKENDS, use_backend
from ember_ml.nn import tensor

A = np.array([[7.0, -2.0, 3.5], [0.5, 4.0, -6.0]], np.float32)
B = np.array([[2.0, 3.0, -1.5], [1.0, -4.0, 2.0]], np.float32)
I = np.array([[7, 2, 3], [5, 4, 6]])  # noqa: E741
J = np.array([[2, 3, 1], [1, 4, 2]])
FLOAT = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def check(got, want):
    assert isinstance(got, tensor.Tensor)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("function", FLOAT + COMPARE)
def test_float_operators(backend, function):
    a, b = tensor.array(A), tensor.array(B)
    check(function(a, b), function(A, B))
    check(function(a, 2.5), function(A, np.float32(2.5)))
    check(function(2.5, a), function(np.float32(2.5), A))
    check(function(a, 2), function(A, np.float32(2)))
    check(function(-200, a), function(np.float32(-200), A))
    check(function(a, B), function(A, B))
    check(function(A, b), function(A, B))
    check(function(a, B.tolist()), function(A, B))


def test_power(backend):
    check(tensor.array(A) ** 2, A**2)
    check(2.0 ** tensor.array(B), np.float32(2) ** B)
    check(tensor.array(np.abs(A)) ** tensor.array(B), np.abs(A) ** B)


@pytest.mark.parametrize("function", INTEGER + FLOAT[:3] + FLOAT[4:] + COMPARE)
def test_integer_operators(backend, function):
    i, j = tensor.array(I), tensor.array(J)
    for got, want in (
        (function(i, j), function(I, J)),
        (function(i, 3), function(I, 3)),
        (function(3, j), function(3, J)),
    ):
        check(got, want)
        assert got.dtype == ("bool" if function in COMPARE else "int64")


def test_matmul_and_unary(backend):
    a, i = tensor.array(A), tensor.array(I)
    check(a @ tensor.array(B.T), A @ B.T)
    check(a @ B.T, A @ B.T)
    check(A @ tensor.array(B.T), A @ B.T)
    check(-a, -A)
    check(+a, A)
    check(abs(a), abs(A))
    check(~i, ~I)
    check(~tensor.array([True, False]), [False, True])


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ],
)
def test_in_place_operators(backend, name):
    function = getattr(operator, f"i{name}")
    first, second = (A, B.T) if name == "matmul" else (I, J)
    if name == "matmul":
        first, second = A @ B.T, B @ A.T
    if name in ("truediv",):
        first, second = A, B
    x = tensor.array(first)
    alias, snapshot = x, copy.copy(x)
    before = x.numpy().copy()
    result = function(x, tensor.array(second))
    assert result is x
    want = getattr(operator, name if name not in ("and", "or") else name + "_")(first, second)
    check(alias, want)
    check(snapshot, before)


def test_in_place_keeps_dtype_and_shape(backend):
    x = tensor.array([1, 2])
    with pytest.raises(TypeError, match="would change the dtype from int64 to float32"):
        x += 0.5
    with pytest.raises(ValueError, match=r"would change the shape from \(2,\) to \(3, 2\)"):
        x += ops.ones((3, 2), dtype="int64")
    assert x.tolist() == [1, 2]


def test_equality_with_anything(backend):
    x = tensor.array([1.0, 2.0])
    for other in (None, "abc", object(), {}):
        assert (x == other) is False
        assert (x != other) is True
    assert (x == [1.0, 3.0]).tolist() == [True, False]
    assert len({x, x, tensor.array([1.0, 2.0])}) == 2


def test_attributes(backend):
    x = ops.zeros((2, 3, 4), dtype=tensor.float32)
    assert (x.shape, x.ndim, x.size, x.nbytes, len(x)) == ((2, 3, 4), 3, 24, 96, 2)
    assert type(x.shape) is tuple
    assert x.dtype is tensor.float32
    assert x.backend == backend
    assert x.device == ops.get_device()
    assert x.mT.shape == (2, 4, 3)
    assert x[0].T.shape == (4, 3)
    with pytest.raises(ValueError, match="T needs a matrix"):
        _ = x.T
    z = tensor.array([1 + 2j])
    assert (z.real.tolist(), z.imag.tolist()) == ([1.0], [2.0])


def test_scalars(backend):
    assert bool(tensor.array(3)) is True
    assert int(tensor.array(3.7)) == 3
    assert float(tensor.array(3)) == 3.0
    assert complex(tensor.array(2.5)) == 2.5 + 0j
    assert operator.index(tensor.array(5)) == 5
    assert [10, 20, 30][tensor.array(1)] == 20
    assert range(tensor.array(3)).stop == 3
    assert type(tensor.array(2).item()) is int
    assert type(tensor.array(2.0).item()) is float
    assert type(tensor.array(True).item()) is bool
    assert type(tensor.array(2j).item()) is complex
    assert f"{tensor.array(1.25):.1f}" == "1.2"
    assert math.isnan(float(tensor.array(float("nan"))))
    for wrong in (bool, int, float, complex, lambda x: x.item()):
        with pytest.raises(ValueError, match="one element"):
            wrong(tensor.array([1.0, 2.0]))
    for wrong in (tensor.array(1.0), tensor.array([1])):
        with pytest.raises(TypeError, match="0-d integer"):
            operator.index(wrong)


def test_iteration_and_membership(backend):
    x = tensor.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x
    assert 9 not in x
    assert None not in x
    _first, second = x
    assert second.tolist() == [3, 4]
    with pytest.raises(TypeError, match="0-d"):
        iter(tensor.array(1))
    with pytest.raises(TypeError, match="0-d"):
        len(tensor.array(1))


def test_lists_and_numpy(backend):
    x = tensor.array([[1.5, 2.5]])
    assert x.tolist() == [[1.5, 2.5]]
    assert tensor.array(2).tolist() == 2
    assert isinstance(x.numpy(), np.ndarray)
    assert tensor.array(2.0).numpy().shape == ()
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.exp(x).dtype == np.float32
    np.testing.assert_array_equal(np.concatenate([x, x]), [[1.5, 2.5]] * 2)
    assert ops.zeros((0, 3)).tolist() == []


@pytest.mark.parametrize("other", list(BACKENDS))
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "complex64"]
)
def test_to_backend(backend, other, dtype):
    x = tensor.array([0, 1, 1], dtype=dtype)
    y = x.to_backend(other)
    assert (y.backend, y.dtype.name, y.tolist()) == (other, dtype, x.tolist())
    assert y.to_backend(backend).tolist() == x.tolist()


def test_bfloat16_moves_without_loss():
    with use_backend("torch"):
        x = tensor.array([1.0, 3.140625, -1e30], dtype=tensor.bfloat16)
    y = x.to_backend("mlx")
    assert y.dtype is tensor.bfloat16
    assert y.tolist() == x.tolist()
    with pytest.raises(TypeError, match="no bfloat16"):
        x.numpy()
    with pytest.raises(TypeError, match="the numpy backend has no bfloat16"):
        x.to_backend("numpy")


def test_dlpack(backend):
    x = tensor.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(np.from_dlpack(x), x.numpy())
    assert torch.from_dlpack(x).tolist() == x.tolist()
    assert ops.from_dlpack(np.arange(3.0, dtype=np.float32)).tolist() == [0.0, 1.0, 2.0]
    assert ops.from_dlpack(torch.arange(3)).tolist() == [0, 1, 2]
    assert x.__dlpack_device__()[0] == 1


def test_copies(backend):
    x = tensor.array([1.0, 2.0])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0] = 9.0
    assert (shallow.tolist(), deep.tolist(), x.tolist()) == ([1.0, 2.0], [1.0, 2.0], [9.0, 2.0])
    source = np.array([1.0, 2.0], np.float32)
    made = tensor.array(source)
    source[0] = 7.0
    assert made.tolist() == [1.0, 2.0]


def test_pickling_is_refused(backend):
    with pytest.raises(TypeError, match="safetensors"):
        pickle.dumps(tensor.array([1.0]))
    assert pickle.loads(pickle.dumps(tensor.float32)) is tensor.float32


def test_repr(backend):
    x = tensor.array([[1.0, 2.5], [-3.0, 4.0]])
    assert repr(x).replace("\n       ", "") == (
        "tensor([[ 1. ,  2.5], [-3. ,  4. ]], shape=(2, 2), dtype=float32, "
        f"device='{x.device}', backend='{backend}')"
    )
    assert "..." in repr(ops.zeros((100, 100)))
    assert "int64" in repr(tensor.array(3))
    assert "shape=(0, 3)" in repr(ops.zeros((0, 3)))


def test_weak_references(backend):
    x = tensor.array([1.0])
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_convert_to_tensor(backend):
    x = tensor.array([1, 2])
    assert tensor.convert_to_tensor(x) is x
    assert tensor.convert_to_tensor(x, dtype="float32").dtype is tensor.float32
    assert tensor.convert_to_tensor(x, device="cpu").device == "cpu"
    assert tensor.convert_to_tensor([[1, 2.5]]).dtype is tensor.float32
    assert tensor.convert_to_tensor([True]).dtype is tensor.bool_
    assert tensor.convert_to_tensor([1j]).dtype is tensor.complex64
    assert tensor.convert_to_tensor([]).shape == (0,)
    assert tensor.convert_to_tensor(range(3)).tolist() == [0, 1, 2]
    assert tensor.convert_to_tensor(np.float16(2)).dtype is tensor.float16
    assert tensor.convert_to_tensor([x, x]).tolist() == [[1, 2], [1, 2]]
    assert tensor.convert_to_tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]
    assert tensor.convert_to_tensor(np.arange(6)[::-2]).tolist() == [5, 3, 1]
    assert tensor.convert_to_tensor(torch.tensor([1.0, 2.0])).backend == backend
    assert tensor.Tensor([1.0]).dtype is tensor.float32


def test_lists_follow_the_promotion_table(backend):
    half = tensor.array(1.0, dtype="float16")
    for data, dtype in (
        ([True, 2], "int64"),
        ([1, 2.5], "float32"),
        ([[1], [2j]], "complex64"),
        ([tensor.array(1.0), 2], "float32"),
        ([half, 2.0], "float16"),
        ([half, tensor.array(1.0)], "float32"),
        ([np.int32(1), np.int32(2)], "int32"),
        ([[], []], "float32"),
    ):
        assert tensor.array(data).dtype == dtype, data
    assert tensor.array([10**30], dtype="float32").tolist() == [float(np.float32(1e30))]
    for data in ([2**63], [2**63, -1], [2**70]):
        with pytest.raises(OverflowError, match="does not fit int64"):
            tensor.array(data)
    for data in ([1, None], ["a"], [object()], np.longdouble(1)):
        with pytest.raises(TypeError, match="numbers"):
            tensor.array(data)


def test_numbers_derived_from_pythons_are_weak(backend):
    x = tensor.array([1.0, 2.0])
    assert (x * np.float64(2)).dtype == "float32"
    assert (np.sqrt(4.0) * x).tolist() == [2.0, 4.0]
    assert (x + 2**70).tolist() == [float(np.float32(2**70))] * 2


def test_operands_by_keyword(backend):
    x = tensor.array([1.0, 2.0])
    assert ops.exp(x=x).tolist() == ops.exp(x).tolist()
    assert ops.add(x=x, y=1).tolist() == [2.0, 3.0]
    assert ops.sum(x=x, axis=0).item() == 3.0
    assert ops.concat(arrays=[x, x], axis=0).shape == (4,)
    assert ops.where(condition=x > 1, x=x, y=0.0).tolist() == [0.0, 2.0]
    assert ops.make_complex(real=x, imag=x).tolist() == [1 + 1j, 2 + 2j]


def test_from_native(backend):
    x = tensor.array(A)
    again = tensor.Tensor.from_native(x.native)
    assert again.native is x.native
    assert (again.backend, again.dtype) == (backend, x.dtype)
    with use_backend("numpy"):  # the active backend does not count
        assert tensor.Tensor.from_native(x.native).backend == backend
    with pytest.raises(TypeError, match="list is not an array of a backend"):
        tensor.Tensor.from_native([1.0])
    with pytest.raises(TypeError, match="has no dtype object"):
        tensor.Tensor.from_native(np.array([None]))


def test_native_arrays_as_operands(backend):
    x = tensor.array([1.0, 2.0])
    assert ops.sin(x.native).backend == backend
    with use_backend("numpy"):
        assert ops.sin(x.native).backend == backend
    assert (x + np.ones(2, np.float32)).backend == backend


def test_methods_are_the_ops(backend):
    x = tensor.array(np.abs(A) / 10)
    special = {"reshape", "transpose", "permute", "mT", "real", "imag"}
    for name in {name for name in vars(TensorMethods) if not name.startswith("_")} - special:
        required = {
            "dot": (tensor.array(B.T),),
            "matmul": (tensor.array(B.T),),
            "astype": ("int32",),
            "swapaxes": (0, 1),
            "moveaxis": (0, 1),
            "broadcast_to": ((4, 2, 3),),
            "roll": (1,),
            "repeat": (2,),
            "tile": ((2, 1),),
            "split": (2,),
            "take": (tensor.array([0]), 1),
            "clip": (0.1, 0.5),
            "expand_dims": (0,),
            "cumsum": (0,),
            "cumprod": (0,),
        }.get(name, ())
        got, want = getattr(x, name)(*required), getattr(ops, name)(x, *required)
        got, want = (got, want) if isinstance(got, (list, tuple)) else ([got], [want])
        for one, other in zip(got, want, strict=True):
            assert one.tolist() == other.tolist(), name
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == x.reshape(-1, 2).shape == (3, 2)
    assert x.transpose().shape == x.transpose(1, 0).shape == x.permute((1, 0)).shape == (3, 2)
