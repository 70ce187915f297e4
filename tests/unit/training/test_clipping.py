"""Clipping against torch.nn.utils."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn import tensor
from ember_ml.training.clipping import clip_by_norm, clip_by_value, global_norm

torch = pytest.importorskip("torch")
SHAPES = [(), (5,), (4, 3), (2, 3, 4)]


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [np.asarray(3.0 * rng.normal(size=shape), np.float32) for shape in SHAPES]


def by_torch(function: Any) -> list[np.ndarray]:
    params = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    for param, grad in zip(params, arrays(), strict=True):
        param.grad = torch.tensor(grad)
    function(params)
    return [param.grad.numpy() for param in params]


def close(mine: Any, theirs: list[np.ndarray]) -> None:
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


@pytest.mark.parametrize("most", [0.5, 7.0, 1e6])
def test_by_norm(backend: str, most: float) -> None:
    grads = [tensor.array(array) for array in arrays()]
    expected = by_torch(lambda params: torch.nn.utils.clip_grad_norm_(params, most))
    close(clip_by_norm(grads, most), expected)
    named = {f"p{at}": grad for at, grad in enumerate(grads)}
    norm = global_norm(named)
    for known in (norm, float(norm)):
        clipped = clip_by_norm(named, most, norm=known)
        assert list(clipped) == list(named)
        close(clipped.values(), expected)
    close(grads, arrays())


def test_norm(backend: str) -> None:
    expected = np.sqrt(sum(float((array.astype(np.float64) ** 2).sum()) for array in arrays()))
    found = global_norm([tensor.array(array) for array in arrays()])
    assert found.shape == ()
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_by_value(backend: str) -> None:
    grads = [tensor.array(array) for array in arrays()]
    expected = by_torch(lambda params: torch.nn.utils.clip_grad_value_(params, 0.7))
    close(clip_by_value(grads, 0.7), expected)
    close(grads, arrays())


def test_none_stays(backend: str) -> None:
    grads = [None, tensor.array([3.0, 4.0]), None]
    assert [g is None for g in clip_by_norm(grads, 1.0)] == [True, False, True]
    assert clip_by_value({"a": None, "b": ops.ones(1)}, 0.5)["a"] is None
    assert global_norm(grads).item() == 5.0


def test_zero_gradients(backend: str) -> None:
    assert clip_by_norm([ops.zeros(3)], 1.0)[0].tolist() == [0.0, 0.0, 0.0]


def test_half_precision(backend: str) -> None:
    """Squares beyond float16's range do not overflow, and the dtype stays."""
    clipped = clip_by_norm([tensor.array([3000.0, 4000.0], dtype="float16")], 5.0)[0]
    assert str(clipped.dtype) == "float16"
    np.testing.assert_allclose(clipped.numpy(), [3.0, 4.0], rtol=1e-3)


def test_inside_a_compiled_function(backend: str) -> None:
    options = {"fullgraph": True, "backend": "aot_eager"} if backend == "torch" else {}
    compiled = ember_ml.autodiff.compile(lambda x: clip_by_norm([x], 1.0)[0], **options)
    np.testing.assert_allclose(compiled(tensor.array([3.0, 4.0])).numpy(), [0.6, 0.8], rtol=1e-5)


def test_bad_arguments(backend: str) -> None:
    with pytest.raises(ArgumentError, match="max_norm must be more than 0, not 0"):
        clip_by_norm([ops.ones(1)], 0)
    with pytest.raises(ArgumentError, match="limit"):
        clip_by_value([ops.ones(1)], -1.0)
    with pytest.raises(ArgumentTypeError, match="tensors or None"):
        global_norm([3.0])
    with pytest.raises(ArgumentError, match="none at all"):
        global_norm([])


def test_two_backends() -> None:
    with ember_ml.use_backend("numpy"):
        first = ops.ones(1)
    with ember_ml.use_backend("torch"):
        second = ops.ones(1)
    with pytest.raises(ArgumentError, match="numpy, torch"):
        global_norm([first, second])
