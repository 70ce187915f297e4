"""Frameworks' compilers trace through Ember functions without a break."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import torch

from ember_ml import ops, use_backend
from ember_ml.nn import tensor


def network(x: tensor.Tensor, weight: tensor.Tensor) -> tensor.Tensor:
    """A bit of everything.

    Contraction, broadcasting, scalars, reduction, indexing, creation, norms, attention.
    """
    hidden = ops.gelu(ops.matmul(ops.rms_norm(x), weight) + 0.5)
    heads = ops.permute_dims(ops.reshape(hidden, (2, 4, 2, 3)), (0, 2, 1, 3))
    mixed = ops.scaled_dot_product_attention(heads, heads, heads, causal=True)
    joined = ops.concat([mixed[:, 0], 1.0 - mixed[:, 1]], axis=-1)
    scaled = (
        joined * ops.arange(6, dtype="float32") / (1e-6 + ops.std(joined, axis=-1, keepdims=True))
    )
    return ops.where(scaled > 0, ops.softmax(scaled, axis=-1), -scaled).sum(axis=1)


def inputs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 4, 6)).astype(np.float32), rng.standard_normal((6, 6)).astype(
        np.float32
    )


def expected() -> np.ndarray:
    with use_backend("numpy"):
        return network(*map(tensor.array, inputs())).numpy()


def test_torch_compile_of_tensors():
    torch._dynamo.reset()
    with use_backend("torch"):
        compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
        got = compiled(*map(tensor.array, inputs()))
    np.testing.assert_allclose(got.numpy(), expected(), rtol=2e-4, atol=2e-5)


def test_torch_compile_of_native_arrays_and_gradients():
    torch._dynamo.reset()

    def loss(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return ops.sum(
            network(tensor.convert_to_tensor(x), tensor.convert_to_tensor(weight))
        ).native

    arrays = [torch.tensor(array, requires_grad=True) for array in inputs()]
    with use_backend("torch"):
        tensor.array(0.0)
        plain = torch.autograd.grad(loss(*arrays), arrays)
        traced = torch.autograd.grad(
            torch.compile(loss, fullgraph=True, backend="aot_eager")(*arrays), arrays
        )
    for one, other in zip(plain, traced, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_mlx_compile():
    def native(x: mx.array, weight: mx.array) -> mx.array:
        return network(tensor.convert_to_tensor(x), tensor.convert_to_tensor(weight)).native

    with use_backend("mlx"):
        got = mx.compile(native)(*map(mx.array, inputs()))
    np.testing.assert_allclose(np.array(got), expected(), rtol=2e-4, atol=2e-5)


def test_mlx_gradients_trace_through():
    def loss(x: mx.array, weight: mx.array) -> mx.array:
        return ops.sum(
            network(tensor.convert_to_tensor(x), tensor.convert_to_tensor(weight))
        ).native

    arrays = [torch.tensor(array, requires_grad=True) for array in inputs()]
    with use_backend("mlx"):
        got = mx.compile(mx.grad(loss, argnums=(0, 1)))(*map(mx.array, inputs()))
    with use_backend("torch"):
        want = torch.autograd.grad(loss(*arrays), arrays)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(np.array(one), other.numpy(), rtol=1e-3, atol=1e-4)
