"""`ops.vectorize`: Python functions over whole tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ember_ml import ops, use_backend
from ember_ml.backend import available
from ember_ml.ops.vectorize import vectorize


def values(x):
    return np.asarray(x)


def test_elementwise_and_broadcasting(backend):
    clamp = vectorize(lambda x, y: x - y if x > y else x + y)
    x, y = ops.array([1.0, 5.0, 2.0]), ops.array([[3.0], [4.0]])
    out = clamp(x, y)
    assert out.backend == backend
    assert out.dtype == "float32"
    reference = np.vectorize(lambda a, b: a - b if a > b else a + b)
    np.testing.assert_array_equal(values(out), reference(values(x), values(y)))


def test_python_scalars_lists_and_functions_of_math(backend):
    np.testing.assert_allclose(
        values(vectorize(math.hypot)([3.0, 6.0], 4.0)), [5.0, math.hypot(6, 4)], rtol=1e-6
    )
    assert vectorize(lambda x: x * 2)(3).shape == ()
    assert vectorize(lambda x: int(x) % 2 == 0)([1, 2]).dtype == "bool"
    assert vectorize(lambda x: 0 if x < 0 else 0.5)([-1, 1]).dtype == "float32"
    assert vectorize(lambda x: x, dtype="float16")([1, 2]).dtype == "float16"


def test_several_results(backend):
    low, high = vectorize(lambda x: (x - 1, x + 1))(ops.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(values(low), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(values(high), [[2, 3], [4, 5]])


def test_signature(backend):
    dot = vectorize(lambda x, y: ops.sum(x * y), signature="(n),(n)->()")
    x, y = ops.reshape(ops.arange(24.0), (2, 3, 4)), ops.array([1.0, 0.0, 2.0, 1.0])
    np.testing.assert_allclose(values(dot(x, y)), values(x) @ values(y))
    outer = vectorize(lambda x, y: x[:, None] * y, signature="(n), (m) -> (n, m)")
    got = outer(ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([1.0, 10.0, 100.0]))
    assert got.shape == (2, 2, 3)
    split = vectorize(lambda x: (x[:1], ops.sum(x)), signature="(n)->(k),()")
    first, total = split(ops.array([[1.0, 2.0], [3.0, 4.0]]))
    assert first.shape == (2, 1)
    np.testing.assert_array_equal(values(total), [3.0, 7.0])


def test_empty(backend):
    assert vectorize(lambda x: x, dtype="int32")(ops.zeros((0, 3))).shape == (0, 3)
    assert vectorize(lambda x: x, dtype="int32")(ops.zeros((0, 3))).dtype == "int32"
    with pytest.raises(ValueError, match="dtype"):
        vectorize(lambda x: x)(ops.zeros((0,)))


def test_results_stay_where_the_arguments_are():
    for home in available():
        with use_backend(home):
            x = ops.array([1.0, 2.0])
        for active in available():
            with use_backend(active):
                assert vectorize(lambda x: 1.5)(x).backend == home


def test_torch_gradients_flow_through():
    with use_backend("torch"):
        leaf = torch.tensor([1.0, -2.0], requires_grad=True)
        vectorize(lambda x: x * x if x > 0 else 3 * x)(leaf).native.sum().backward()
    np.testing.assert_array_equal(leaf.grad, [2.0, 3.0])


@pytest.mark.parametrize("signature", ["n->()", "(n)", "(n)->", "(n->())", "->()"])
def test_bad_signature(signature):
    with pytest.raises(ValueError, match="signature"):
        vectorize(abs, signature=signature)


def test_bad_arguments(backend):
    with pytest.raises(ValueError, match="axis n"):
        vectorize(lambda x, y: 0, signature="(n),(n)->()")([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="lacks"):
        vectorize(lambda x: 0, signature="(n,m)->()")([1, 2])
    with pytest.raises(ValueError, match="result"):
        vectorize(lambda x: x, signature="(n)->()")([1, 2])
    with pytest.raises(ValueError, match="arguments"):
        vectorize(lambda x: x, signature="(n)->()")([1], [2])
    with pytest.raises(ValueError, match="broadcast"):
        vectorize(lambda x, y: x)([1, 2], [1, 2, 3])
