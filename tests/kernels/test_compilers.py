"""Every kernel as an op of torch: registration, compilers, transforms and exports."""

from __future__ import annotations

import pytest
import torch

from ember_ml.backend.torch import kernels
from tests.kernels.cases import CASES, normal
from tests.kernels.comparing import Recorder, cast, flat, gradients

NAMES = {case.kernel: name for name, case in CASES.items() if case.grads}
"""One case of each kernel."""


@pytest.mark.parametrize("name", NAMES.values(), ids=str)
def test_registration(name):
    """Schemas, fake tensors and gradients of the ops that a case calls are consistent."""
    case = CASES[name]
    calls = []

    class Calls(Recorder):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func._schema.name.startswith("ember_ml::"):
                calls.append((func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    operands = cast(case.operands(5), torch.float32)
    with Calls():
        outputs = flat(case.run(*operands))
        gradients(outputs, operands, [torch.ones_like(y) for y in outputs])
    assert len(calls) >= 2
    for func, args, kwargs in calls:
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
        torch.library.opcheck(
            func,
            given,
            kwargs,
            test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
        )


@pytest.mark.parametrize("name", NAMES.values(), ids=str)
def test_compiled(name):
    """A compiled function has the same values and gradients, without a break in its graph."""
    case = CASES[name]
    operands = cast(case.operands(5), torch.float32)
    compiled = torch.compile(case.run, fullgraph=True, backend="aot_eager")
    results = []
    for run in (compiled, case.run):
        outputs = flat(run(*operands))
        cotangents = [torch.ones_like(y) for y in outputs]
        results.append([*outputs, *gradients(outputs, operands, cotangents)])
    torch.compiler.reset()
    for got, expected in zip(*results, strict=True):
        assert (got is None) == (expected is None)
        if got is not None:
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", NAMES.values(), ids=str)
def test_transforms(name):
    """`torch.func.grad` and `vmap` use plain ops, with the same values."""
    case = CASES[name]
    operands = [x.detach() if isinstance(x, torch.Tensor) else x for x in case.operands(4)]
    narrow = [
        x.detach() if isinstance(x, torch.Tensor) else x for x in cast(operands, torch.float32)
    ]

    def total(run, first, rest):
        return sum((y * y).sum() for y in flat(run(first, *rest)))

    got = torch.func.grad(lambda x: total(case.run, x, narrow[1:]))(narrow[0])
    expected = torch.func.grad(lambda x: total(case.reference, x, operands[1:]))(operands[0])
    torch.testing.assert_close(got.double(), expected, rtol=1e-3, atol=1e-3)
    many = torch.stack([narrow[0], 2.0 * narrow[0]])
    mapped = torch.func.vmap(lambda x: flat(case.run(x, *narrow[1:]))[0])(many)
    torch.testing.assert_close(mapped[0], flat(case.run(*narrow))[0], rtol=1e-4, atol=1e-4)


def test_other_arrays_use_plain_ops():
    """float64, complex numbers and the meta device are not served."""
    x = normal(2, 3)
    assert not kernels.serves(x)
    assert not kernels.serves(x.to(torch.complex64))
    assert not kernels.serves(x.float().to("meta"))
    assert not kernels.serves(x.float(), x)
    assert kernels.serves(x.float(), None, x.float())
    assert not kernels.serves(x.float(), x.bfloat16())
    assert not kernels.serves(x.float().as_subclass(type("Other", (torch.Tensor,), {})))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("mamba", ("selective_scan", "causal_conv1d", "cross_entropy")),
        ("mamba2[head_dim=4]", ("linear_recurrence", "causal_conv1d", "gated_rms_norm")),
        ("gated_linear_attention", ("gated_linear_attention", "gated_rms_norm")),
        ("gated_delta_net", ("gated_delta_rule", "gated_rms_norm")),
    ],
)
def test_training_uses_the_kernels(pattern, names):
    """The gradients of a model are those without the kernels, and the kernels compute them."""
    from ember_ml import nn, ops, use_backend

    with use_backend("torch"):
        ops.random.set_seed(0)
        model = nn.models.LanguageModel(pattern, vocab_size=8, hidden_size=8)
        tokens = ops.array([[1, 2, 3, 4, 5]])
        step = nn.value_and_grad(
            model, lambda: ops.cross_entropy(model(tokens), tokens, reduction="mean")
        )
        with Recorder() as record:
            loss, grads = step()
        for name in names:
            assert {f"triton_{name}", f"triton_{name}_backward"} <= set(record.names), name
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "serves", lambda *arrays: False)
            expected, others = step()
        assert abs(loss.item() - expected.item()) < 1e-5
        for key, grad in grads.items():
            torch.testing.assert_close(grad.numpy(), others[key].numpy(), rtol=1e-3, atol=1e-4)
