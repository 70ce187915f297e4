"""Arithmetic VJP rules receive native arrays if no tape records, and tensors otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import GradientTape, autodiff, ops
from ember_ml._core.op import OPS
from ember_ml.autodiff import rules
from ember_ml.autodiff.record import Scope
from ember_ml.nn import tensor

rules.load()
KEYS = [key for key, op in OPS.items() if op.vjps is not None and op.vjps.arithmetic is not None]
UNARY = [key for key in KEYS if len(OPS[key].names) == 1]
BINARY = [key for key in KEYS if len(OPS[key].names) == 2]
SHAPES = [((3, 2), (3, 2)), ((3, 1), (2,)), ((2,), (3, 2)), ((), (2,)), ((), ())]
pytestmark = [pytest.mark.parametrize("backend", ["numpy"], indirect=True)]


@pytest.fixture(params=["float32", "float64"])
def drawn(request):
    rng = np.random.default_rng(0)
    return lambda *shape: tensor.array(rng.uniform(0.1, 0.9, shape).astype(request.param))


def assert_agree(function, *sources) -> None:
    """Check that gradients by native arrays equal those by ops, bit for bit."""
    places = tuple(range(len(sources)))
    quick = autodiff.grad(lambda *xs: ops.sum(ops.sin(function(*xs))), places)
    quick(*sources)  # the first calls of an op go the long way
    with GradientTape() as tape:
        tape.watch(sources)
        want = quick(*sources)
    assert all(tape.tracks(g) for g in want)  # they were computed by ops
    for got, one, x in zip(quick(*sources), want, sources, strict=True):
        assert got.dtype is x.dtype
        assert got.shape == x.shape
        np.testing.assert_array_equal(got.numpy(), one.numpy())


def test_there_are_rules_of_both_kinds(backend: str) -> None:
    assert {"elementwise.multiply", "elementwise.divide"} <= set(BINARY)
    assert {"exponential.exp", "trigonometric.tanh"} <= set(UNARY)
    assert len(UNARY) + len(BINARY) == len(KEYS)


@pytest.mark.parametrize("key", UNARY)
def test_of_one_tensor(backend: str, drawn, key: str) -> None:
    assert_agree(OPS[key].function, drawn(3, 2))
    assert_agree(OPS[key].function, drawn())


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("key", BINARY)
def test_of_two_tensors(backend: str, drawn, key: str, shapes) -> None:
    assert_agree(OPS[key].function, drawn(*shapes[0]), drawn(*shapes[1]))


@pytest.mark.parametrize("number", [0.7, 3, 2**40, True])
@pytest.mark.parametrize("key", BINARY)
def test_of_a_tensor_and_a_number(backend: str, drawn, key: str, number) -> None:
    function = OPS[key].function
    assert_agree(lambda x: function(x, number), drawn(3, 2))
    assert_agree(lambda x: function(number, x), drawn(3, 2))


def test_the_usual_calls_are_written_down_quickly(backend: str, drawn) -> None:
    def steps():
        with Scope([drawn(2)]) as scope:
            (x,) = scope.sources
            _ = ops.tanh(x) * x * 2.0 + drawn(2)
        return scope.log("numpy").steps

    steps()
    assert [type(step) for step in steps()] == [tuple] * 4


def test_a_value_used_twice_gets_both_parts(backend: str, drawn) -> None:
    x = drawn(3)
    got = autodiff.grad(lambda x: ops.sum(x * x + x / 2.0 - x))(x)
    np.testing.assert_allclose(got.numpy(), 2 * x.numpy() - 0.5, rtol=1e-6)


def test_rebinding_an_operand_changes_no_gradient(backend: str, drawn) -> None:
    x = drawn(3)
    before = x.numpy().copy()

    def function(x):
        y = x * 3.0
        z = y * y
        y += 1.0
        return ops.sum(z)

    autodiff.grad(function)(x)
    np.testing.assert_allclose(autodiff.grad(function)(x).numpy(), 18 * before, rtol=1e-6)
