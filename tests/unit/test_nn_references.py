"""Each fast path for neural networks agrees with its composite, the gradients included."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.dispatch import OPS
from ember_ml._core.tensor import EmberTensor, wrap
from tests.conformance.runner import _build
from tests.conformance.test_ops import CASES

ROWS = [
    case
    for case in CASES
    if case.key.startswith("nn.") and OPS[case.key].body is not None and "float32" in case.dtypes
]


def first(result):
    return result[0] if isinstance(result, tuple) else result


def numbers(array):
    return np.array(array) if isinstance(array, mx.array) else array.detach().numpy()


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.label)
def test_value(case, backend):
    runtime.load(backend)
    op = OPS[case.key]
    if backend in op.natives:
        args = _build(case, "float32")[0]
        with np.errstate(all="ignore"):
            fast, slow = op.function(*args, **case.kwargs), op.body(*args, **case.kwargs)
        np.testing.assert_allclose(first(fast).numpy(), first(slow).numpy(), rtol=3e-5, atol=3e-5)


def gradient(function, case, args, backend):
    """The gradient of a weighted sum of the result with respect to the first operand."""

    def weighted(data):
        x = wrap(data, backend)
        if (
            case.key == "nn.ctc.ctc_loss"
        ):  # torch's gradient is that of normalised log-probabilities
            x = ops.log_softmax(x)
        out = first(function(x, *args[1:], **case.kwargs)).native
        weights = np.random.default_rng(0).uniform(0.5, 1.5, tuple(out.shape)).astype(np.float32)
        return (
            out * (torch.from_numpy(weights) if backend == "torch" else mx.array(weights))
        ).sum()

    data = args[0].native
    if backend == "mlx":
        return mx.grad(weighted)(data)
    leaf = data.clone().requires_grad_()
    total = weighted(leaf)  # of nothing, if there is no time
    return torch.autograd.grad(total, leaf)[0] if total.requires_grad else torch.zeros_like(leaf)


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.label)
def test_gradient(case, backend):
    runtime.load(backend)
    op = OPS[case.key]
    if backend not in op.natives or backend == "numpy":
        return
    args = _build(case, "float32")[0]
    if not all(np.isfinite(x.numpy()).all() for x in args if isinstance(x, EmberTensor)):
        return
    if not np.isfinite(first(op.function(*args, **case.kwargs)).numpy()).all():
        return
    fast = gradient(op.function, case, args, backend)
    slow = gradient(op.body, case, args, backend)
    np.testing.assert_allclose(numbers(fast), numbers(slow), rtol=1e-3, atol=1e-4)
