"""Kernels at the edges: empty arrays, extreme decays, infinite and wrong values."""

from __future__ import annotations

import pytest
import torch

from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops.linear_attention import gated_delta_rule, gated_linear_attention
from ember_ml.backend.torch.ops.nn.classification import cross_entropy
from ember_ml.backend.torch.ops.nn.gating import gated_rms_norm
from ember_ml.backend.torch.ops.recurrence import linear_recurrence
from ember_ml.backend.torch.ops.selective_scan import selective_scan
from ember_ml.backend.torch.ops.signal.filtering import causal_conv1d_silu
from tests.kernels.cases import CASES
from tests.kernels.comparing import cast, flat


def gradients_of(y, *operands):
    total = sum(part.sum() for part in flat(y))
    return torch.autograd.grad(total, operands)


@pytest.mark.parametrize("value", [0.0, 1e-30, 1.0, -1.0])
def test_extreme_factors(value):
    a = torch.full((1, 130, 2), value, requires_grad=True)
    b = torch.ones(1, 130, 2, requires_grad=True)
    h, final = linear_recurrence(a, b)
    expected, _ = kernels.linear_recurrence.reference(a.double(), b.double(), None, 1, False)
    torch.testing.assert_close(h.double(), expected)
    assert all(g.isfinite().all() for g in gradients_of((h, final), a, b))


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")  # NumPy's
def test_factors_whose_product_overflows():
    """A state of zero stays zero, as in a loop."""
    a, b = torch.full((1, 130, 1), 9.0), torch.zeros(1, 130, 1)
    h, _ = linear_recurrence(a, b)
    assert not h.any()


def test_extreme_step_sizes():
    """States that vanish at once, and states that never decay."""
    u, dt = torch.randn(1, 66, 2), torch.tensor([1e6, 0.0]).expand(1, 66, 2)
    a, b = torch.tensor([[-1.0], [-1e6]]), torch.ones(1, 66, 1)
    operands = [x.clone().requires_grad_() for x in (u * 1e-6, dt, a, b, b)]
    y = selective_scan(*operands)
    assert y.isfinite().all()
    assert all(g.isfinite().all() for g in gradients_of(y, *operands))


@pytest.mark.parametrize("decay", [0.0, -1e-8, -50.0, -1e30, float("-inf")])
def test_extreme_log_decays(decay):
    shape = (1, 1, 66, 2)
    q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
    g = torch.full(shape, decay, requires_grad=True)
    y = gated_linear_attention(q, k, v, g)
    wide = [x.detach().double() for x in (q, k, v, g)]
    expected = kernels.gated_linear_attention.reference(*wide, False)
    torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-4)
    assert all(grad.isfinite().all() for grad in gradients_of(y, q, k, v, g))
    k = torch.nn.functional.normalize(k.detach(), dim=-1)
    rate, last = torch.full((*shape[:3], 1), 0.5), g.detach()[..., :1]
    y = gated_delta_rule(q, k, v, rate, last)
    expected = kernels.gated_delta_rule.reference(
        *(x.detach().double() for x in (q, k, v, rate, last))
    )
    torch.testing.assert_close(y.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if "cross" not in name])
def test_empty(name):
    """A sequence without steps, and a batch without examples, use plain ops."""
    case = CASES[name]
    if "norm" in name or "convolution" in name:
        batch = [x[:0] if x.ndim == 3 else x for x in cast(case.operands(4), torch.float32)]
        assert not flat(case.run(*batch))[0].numel()
        return
    outputs = flat(case.run(*cast(case.operands(0), torch.float32)))
    assert outputs[0].numel() == 0
    assert all(y.isfinite().all() for y in outputs if y.is_floating_point())


def test_cross_entropy_of_infinite_logits_and_wrong_targets():
    x = torch.randn(3, 7)
    x[0, 2] = float("-inf")
    x.requires_grad_()
    targets = torch.tensor([1, -100, 6])
    loss = cross_entropy(x, targets, reduction="none")
    expected = torch.nn.functional.cross_entropy(x, targets, reduction="none")
    torch.testing.assert_close(loss, expected)
    assert gradients_of(loss, x)[0].isfinite().all()
    assert cross_entropy(x, torch.tensor([1, 9, 6]), reduction="none").isnan().tolist() == [
        *(False, True, False),
    ]
    assert cross_entropy(x, torch.full((3,), -100)).isnan()


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of exp(-x) in a sigmoid
def test_large_values():
    x = torch.tensor([[3e18, -3e18, 1.0]], requires_grad=True)
    y = gated_rms_norm(x, torch.tensor([[100.0, -100.0, 0.0]]), eps=1e-6)
    assert y.isfinite().all()
    assert gradients_of(y, x)[0].isfinite().all()
    z = causal_conv1d_silu(1e4 * torch.ones(1, 1, 9), torch.tensor([[-1.0, -1.0]]))
    assert not z.any()
    assert z.isfinite().all()
