"""Convolutions of impossible geometry are refused before native code runs."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.ops.signal.convolution import conv_general
from ember_ml.ops.signal.transposed import conv_transpose_general

RANKS = (1, 2, 3)
STEPS = ({"groups": 0}, {"groups": -1}, {"stride": 0}, {"stride": -1}, {"dilation": 0})
FAR = ({"stride": 2**31}, {"stride": 2**40}, {"dilation": 2**31}, {"padding": 2**31})


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("function", [ops.conv, ops.conv_transpose])
def test_public_convolutions(backend: str, rank: int, function: object) -> None:
    x, weight = ops.ones((1, 2, *(3,) * rank)), ops.ones((2, 2, *(2,) * rank))
    for options in (*STEPS, *FAR):
        with pytest.raises(ValueError, match=next(iter(options))):
            function(x, weight, **options)  # type: ignore[operator]
    with pytest.raises(TypeError, match="stride"):
        function(x, weight, stride=1.5)  # type: ignore[operator]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("function", [conv_general, conv_transpose_general])
def test_primitives(backend: str, rank: int, function: object) -> None:
    x, weight = ops.ones((1, 2, *(3,) * rank)), ops.ones((2, 2, *(2,) * rank))
    for options in STEPS:
        steps = {"stride": 1, "dilation": 1, "groups": 1} | options
        stride, dilation = (steps["stride"],) * rank, (steps["dilation"],) * rank
        with pytest.raises(ValueError, match="must be at least 1"):
            function(x, weight, None, stride, ((0, 0),) * rank, dilation, steps["groups"])  # type: ignore[operator]


def test_a_window_longer_than_the_axis(backend: str) -> None:
    x, weight = ops.ones((1, 2, 2)), ops.ones((2, 1, 4))
    with pytest.raises(ValueError, match="conv"):
        conv_general(x, weight, None, (1,), ((0, 0),), (1,), 2).numpy()
    with pytest.raises(ValueError, match="causal_conv1d"):
        ops.causal_conv1d(ops.ones((1, 2, 0)), ops.ones((2, 3)))


@pytest.mark.parametrize("rank", [2, 3])
def test_results_larger_than_memory(backend: str, rank: int) -> None:
    x, weight = ops.ones((1, 1, *(3,) * rank)), ops.ones((1, 1, *(2,) * rank))
    step = 2 ** (48 // rank - 1)
    with pytest.raises(MemoryError):
        ops.sum(ops.conv_transpose(x, weight, stride=step)).item()
    with pytest.raises(MemoryError):
        ops.sum(ops.conv(x, weight, padding=step)).item()


@pytest.mark.parametrize("rank", RANKS)
def test_large_strides_of_one_element(backend: str, rank: int) -> None:
    x, weight = ops.ones((1, 1, *(1,) * rank)), ops.ones((1, 1, *(2,) * rank))
    for stride in (7, 2**16, 2**31 - 1):
        out = ops.conv_transpose(x, weight, stride=stride)
        np.testing.assert_array_equal(out.numpy(), weight.numpy())
        out = ops.conv(ops.ones((1, 1, *(3,) * rank)), weight, stride=stride)
        np.testing.assert_array_equal(out.numpy(), np.full((1, 1, *(1,) * rank), 2.0**rank))
