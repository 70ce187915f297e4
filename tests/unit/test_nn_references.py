"""Each native neural network op agrees with its composite, gradients included."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.dispatch import OPS
from ember_ml.autodiff import grad
from ember_ml.backend import BACKENDS, available
from tests.conformance.runner import build
from tests.conformance.test_ops import CASES

for name in available():
    runtime.load(name)
ROWS = [
    pytest.param(case, backend, id=f"{backend}-{case.label}")
    for case in CASES
    if case.key.startswith("nn.") and OPS[case.key].body is not None and "float32" in case.dtypes
    for backend in BACKENDS
    if backend in OPS[case.key].natives
]
on_native_ops = pytest.mark.parametrize(("case", "backend"), ROWS, indirect=["backend"])


def first(result):
    return result[0] if isinstance(result, tuple) else result


@on_native_ops
def test_value(case, backend):
    op = OPS[case.key]
    args = build(case, "float32")
    with np.errstate(all="ignore"):
        fast, slow = op.function(*args, **case.kwargs), op.body(*args, **case.kwargs)
    np.testing.assert_allclose(first(fast).numpy(), first(slow).numpy(), rtol=3e-5, atol=3e-5)


def gradient(function, case, args):
    """Return the gradient of a weighted sum of the result for the first floating-point operand."""
    at = next(at for at, x in enumerate(args) if x.dtype.is_floating)

    def weighted(x):
        if case.key == "nn.ctc.ctc_loss":  # torch's gradient assumes normalized log-probabilities
            x = ops.log_softmax(x)
        out = first(function(*args[:at], x, *args[at + 1 :], **case.kwargs))
        weights = np.random.default_rng(0).uniform(0.5, 1.5, out.shape).astype(np.float32)
        return ops.sum(out * ops.asarray(weights))

    return grad(weighted)(args[at]).numpy()


@on_native_ops
def test_gradient(case, backend):
    op = OPS[case.key]
    args = build(case, "float32")
    if not np.isfinite(args[0].numpy()).all():
        pytest.skip("an infinite operand has no gradient to compare")
    with np.errstate(all="ignore"):
        if not np.isfinite(first(op.body(*args, **case.kwargs)).numpy()).all():
            pytest.skip("an infinite value has no gradient to compare")
        fast, slow = gradient(op.function, case, args), gradient(op.body, case, args)
    largest = np.abs(args[0].numpy()).max(initial=0.0)
    atol = 1e-4 * max(1.0, largest / 10)  # a saturated softmax cancels terms of its operands' size
    np.testing.assert_allclose(fast, slow, rtol=1e-3, atol=atol)
