"""Extreme, special and missing values, and higher derivatives."""

import numpy as np
import pytest
import torch
from scipy import special

from ember_ml import _native, autodiff, ops
from ember_ml._native.calls import SUFFIXES, Kernel, pointer
from ember_ml.backend import use_backend
from ember_ml.backend.numpy.ops.nn import attention
from ember_ml.nn import tensor
from ember_ml.ops.nn import adjoints
from tests.unit.native.cases import CASES, check, cotangent, expected, operands, run
from tests.unit.native.conftest import supported_levels

ELEMENTARY = {
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "tanh": np.tanh,
    "erf": special.erf,
}


@pytest.mark.parametrize("level", supported_levels())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementary_functions_are_accurate_to_a_few_units(every_size, level, dtype):
    every_size.setattr(_native, "library", _native._open(level))
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-44, 2.1, 20_000)
    x = np.concatenate([rng.normal(size=20_001) * 3, 10.0**exponents, -(10.0**exponents)])
    x = x.astype(dtype)
    for name, reference in ELEMENTARY.items():
        out = np.empty_like(x)
        Kernel(name, "ppii")(SUFFIXES[x.dtype.char], pointer(x), pointer(out), x.size, 1)
        wanted = reference(x.astype(np.float64))
        unit = np.spacing(np.abs(wanted.astype(dtype))).astype(np.float64)
        assert np.max(np.abs(out - wanted) / unit) <= (4 if dtype == "float32" else 6), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementary_functions_at_special_values(every_size, dtype):
    info = np.finfo(dtype)
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.smallest_subnormal]
    x = np.array(values * 3, dtype)  # more than a vector of them
    for name, reference in ELEMENTARY.items():
        out = np.empty_like(x)
        Kernel(name, "ppii")(SUFFIXES[x.dtype.char], pointer(x), pointer(out), x.size, 1)
        with np.errstate(all="ignore"):
            wanted = reference(x.astype(np.float64)).astype(dtype)
        np.testing.assert_array_max_ulp(out[~np.isnan(x)], wanted[~np.isnan(x)], 1)
        assert np.isnan(out[np.isnan(x)]).all()
        if name in ("tanh", "erf"):
            assert (np.signbit(out) == np.signbit(x))[~np.isnan(x)].all()


FINITE = ("sigmoid", "softplus", "erf", "silu", "gelu", "gelu_tanh", "softmax", "log_softmax")


@pytest.mark.parametrize(
    "name", [*FINITE, "swiglu", "glu", "cross_entropy", "layer_norm", "softplus_linear_4"]
)
@pytest.mark.parametrize("scale", [1e-30, 1e3, 1e6])
def test_large_and_small_values_do_not_overflow(every_size, name, scale):
    arrays = [x.astype("float32") for x in operands(CASES[name], 65, scale)]
    for got, wanted in zip(run(CASES[name], arrays), expected(CASES[name], arrays), strict=True):
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5 * max(1, np.abs(wanted).max()))


def _infinite_rows():
    x = np.random.default_rng(3).normal(size=(4, 70))
    x[0, :5] = -np.inf
    x[1, 69] = np.nan
    x[2] = -np.inf
    x[3, 17] = np.inf
    return x


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_infinite_scores_and_nan(every_size, name):
    x = _infinite_rows()
    for got, wanted in zip(run(CASES[name], [x]), expected(CASES[name], [x]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_a_query_without_keys_attends_to_nothing(every_size):
    q, k, v = (np.random.default_rng(n).normal(size=(2, 3, 9, 8)) for n in range(3))
    mask = np.ones((9, 9), bool)
    mask[4] = False
    with use_backend("numpy"):
        tensors = [tensor.array(x) for x in (q, k, v)]
        out, pull = autodiff.vjp(lambda *x: ops.scaled_dot_product_attention(*x, mask), *tensors)
        grads = pull(ops.ones_like(out))
    assert not np.asarray(out.numpy())[:, :, 4].any()
    assert not np.asarray(grads[0].numpy())[:, :, 4].any()
    assert all(np.isfinite(g.numpy()).all() for g in grads)


SHARED = {"keys": ((40, 4, 40, 6), (1, 4, 40, 6)), "queries": ((1, 4, 40, 6), (40, 4, 40, 6))}


@pytest.mark.parametrize("kind", SHARED)
def test_examples_that_share_keys_or_queries(every_size, kind):
    """More scores than the kernels take at a time."""
    rng = np.random.default_rng(0)
    query, key = (rng.normal(size=shape) for shape in SHARED[kind])
    arrays = [query, key, rng.normal(size=key.shape)]
    every_size.setattr(attention, "_CACHED", 1)
    with use_backend("numpy"):
        got = ops.scaled_dot_product_attention(*map(tensor.array, arrays), causal=True)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.from_numpy, arrays), is_causal=True
    )
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slope_of_softplus_without_cancellation(every_size, dtype):
    """Far below zero, 1 - exp(-softplus(z)) must keep its relative precision."""
    info = np.finfo(dtype)
    low = np.log(info.smallest_normal) + 1
    z = np.concatenate([np.linspace(low, 40, 1000), [np.inf, -np.inf]]).astype(dtype)
    zero = [np.zeros((3, 2), dtype), np.zeros((z.size, 2), dtype), z]
    with use_backend("numpy"):
        out, pull = autodiff.vjp(ops.softplus_linear, *[tensor.array(x) for x in zero])
        of_bias = pull(ops.ones_like(out))[2].numpy()
    wide = z.astype(np.float64)
    np.testing.assert_allclose(out.numpy()[0], np.logaddexp(wide, 0), rtol=8 * info.eps)
    np.testing.assert_allclose(of_bias, 3 * special.expit(wide), rtol=8 * info.eps)


def test_nan_stays_in_its_row(every_size):
    x, *others = operands(CASES["softplus_linear_4"], 20)
    x[1, 2, 3] = np.nan
    out, of_x, *_ = run(CASES["softplus_linear_4"], [x, *others])
    for array in (out, of_x):
        assert np.isnan(array[1, 2]).all()
        assert np.isnan(array).sum() == array.shape[-1]


WITH_EMPTY = [n for n in sorted(CASES) if not n.startswith(("cross_entropy", "embedding"))]


@pytest.mark.parametrize("name", WITH_EMPTY)
def test_empty_arrays(every_size, name):
    arrays = operands(CASES[name], 4)
    count = len(arrays) if name in ("attention", "silu_gate") else 1  # arrays with a batch
    check(CASES[name], [x[:0] if at < count else x for at, x in enumerate(arrays)])


@pytest.mark.parametrize("adjoint", [adjoints.glu_adjoint, adjoints.swiglu_adjoint])
def test_gate_gradient_of_another_shape(every_size, adjoint):
    """The kernels would read beyond a gradient of the right size in another shape."""
    with use_backend("numpy"), pytest.raises(ValueError, match=r"shape|broadcast"):
        adjoint(ops.ones((2, 6)), ops.ones((4, 6)))


LINEAR = {"embedding", *[name for name in CASES if name.startswith(("rope", "rotary_heads"))]}
DIFFERENTIABLE_TWICE = sorted(set(CASES) - LINEAR - {"causal_conv1d_20"})


@pytest.mark.parametrize("name", DIFFERENTIABLE_TWICE)
def test_second_derivatives(every_size, name):
    case, arrays = CASES[name], operands(CASES[name], 9)
    places = tuple(range(len(arrays)))

    def size_of_gradient(*tensors):
        def weighed(*inner):
            out = case.function(*inner)
            return ops.sum(out * cotangent(out.shape))

        grads = autodiff.grad(weighed, argnums=places)(*tensors)
        return sum(ops.sum(g * g) for g in grads)

    with use_backend("numpy"):
        got = autodiff.grad(size_of_gradient, argnums=places)(*[tensor.array(x) for x in arrays])
    leaves = [torch.from_numpy(x).requires_grad_() for x in arrays]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = case.reference(*leaves)
        weighed = (out * torch.from_numpy(cotangent(tuple(out.shape)))).sum()
        grads = torch.autograd.grad(weighed, leaves, create_graph=True)
        wanted = torch.autograd.grad(sum((g * g).sum() for g in grads), leaves, allow_unused=True)
    for g, reference in zip(got, wanted, strict=True):
        zero = np.zeros(g.shape) if reference is None else reference.numpy()
        np.testing.assert_allclose(g.numpy(), zero, rtol=1e-8, atol=1e-8)
