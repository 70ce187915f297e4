"""Linear maps by oneDNN against torch's own, values, gradients and modes."""

import itertools
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from ember_ml import _native
from ember_ml.backend import native_products
from ember_ml.backend.torch import products

SHAPES = [((5, 7), 3), ((2, 9, 16), 33), ((3, 2, 5, 64), 70), ((300, 1), 1), ((1, 300), 300)]


@pytest.fixture
def counted(monkeypatch):
    """Use oneDNN for products of any size; return the list of its calls."""
    calls = []
    product = products._product

    def count(*operands):
        calls.append(operands)
        return product(*operands)

    monkeypatch.setattr(products, "_product", count)
    monkeypatch.setattr(products, "_LEAST", 1)
    return calls


def operands(shape, width, bias=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [shape, (width, shape[-1]), *[(width,)] * bias]
    return [torch.randn(each, generator=generator).requires_grad_() for each in shapes]


def laid_out(x, layout):
    """Return the same shape with other strides."""
    if layout == "columns":
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "overlap":
        return x.flatten().unfold(0, x.shape[-1], 1)[: x.shape[-2]].expand(x.shape)
    if layout == "broadcast":
        return x[..., :1].expand(x.shape)
    return torch.cat([x, x], -1)[..., : x.shape[-1]] if layout == "gaps" else x


def check(arrays, x, weight, g_layout="rows"):
    """Compare with torch in float64."""
    given = [x, weight, *arrays[2:]]
    wanted = F.linear(*[each.double() for each in given])
    out = products.onednn_linear(*given)
    assert out.dtype is torch.float32
    torch.testing.assert_close(out.double(), wanted, rtol=1e-4, atol=1e-4)
    g = laid_out(torch.randn_like(out), g_layout)
    grads = torch.autograd.grad(out, arrays, g)
    for got, want in zip(grads, torch.autograd.grad(wanted, arrays, g.double()), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("shape", "width"), SHAPES)
def test_layouts(counted, shape, width, bias):
    layouts = ["rows", "columns", "broadcast", "gaps", "overlap"]
    for of_x, of_weight, of_g in itertools.product(layouts, layouts, layouts[:3]):
        arrays = operands(shape, width, bias)
        check(arrays, laid_out(arrays[0], of_x), laid_out(arrays[1], of_weight), of_g)
    assert counted


@pytest.mark.parametrize("most", [1, 1 << 17])
def test_gradients_of_large_and_small_weights(counted, monkeypatch, most):
    monkeypatch.setattr(native_products, "MOST_WEIGHTS", most)
    monkeypatch.setattr(products, "MOST_WEIGHTS", most)
    arrays = operands((300, 64), 80)
    check(arrays, *arrays[:2])
    assert len(counted) == (3 if most == 1 else 2)
    for layout in ("gaps", "overlap"):
        check(arrays, laid_out(arrays[0], layout), arrays[1])


@pytest.mark.parametrize(
    "learns",
    [(True, False, True), (False, True, True), (True, True, False), (True, True, True)],
)
def test_only_needed_gradients(counted, learns):
    arrays = operands((6, 64), 80)
    for x, learned in zip(arrays, learns, strict=True):
        x.requires_grad_(learned)
    out = products.onednn_linear(*arrays)
    sources = [x for x in arrays if x.requires_grad]
    expected = torch.autograd.grad(F.linear(*arrays).sum(), sources)
    for got, want in zip(torch.autograd.grad(out.sum(), sources), expected, strict=True):
        torch.testing.assert_close(got, want)
    assert len(counted) == 1 + learns[0]


def test_frozen_weights_keep_no_input(counted):
    x, weight, bias = operands((6, 8), 5)
    weight, bias = weight.detach(), bias.detach()
    stored = []
    with torch.autograd.graph.saved_tensors_hooks(stored.append, lambda x: x):
        out = products.onednn_linear(x, weight, bias)
    assert not stored
    (first,) = torch.autograd.grad(out.pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    (wanted,) = torch.autograd.grad(F.linear(x, weight, bias).pow(3).sum(), x, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(wanted.sum(), x)[0])
    assert len(counted) == 4  # both passes, and those of the second derivative


def test_operands_that_torch_computes(counted, monkeypatch):
    """Other dtypes and shapes, autocast, modes that count ops, and oneDNN switched off."""
    x, weight, bias = operands((6, 8), 5)
    with torch.no_grad():
        products.onednn_linear(x.double(), weight.double(), bias.double())
        products.onednn_linear(x[0], weight, bias)
        products.onednn_linear(x, weight[0])
        products.onednn_linear(x[:0], weight, bias)
        with torch.autocast("cpu", torch.bfloat16):
            assert products.onednn_linear(x, weight, bias).dtype is torch.bfloat16
        with FlopCounterMode(display=False) as counter:
            products.onednn_linear(x, weight, bias)
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
        products.onednn_linear(x, weight, bias)
        monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
        with _native.switched_off():
            products.onednn_linear(x, weight, bias)
        with pytest.raises(RuntimeError):
            products.onednn_linear(x, weight[:, :3])
        with pytest.raises(RuntimeError):
            products.onednn_linear(x, weight, bias[:2])
    assert counter.get_total_flops() == 2 * 6 * 8 * 5
    assert not counted


def test_transforms_and_higher_derivatives(counted):
    x, weight, bias = operands((4, 6), 5)
    out = products.onednn_linear(x, weight, bias)
    (first,) = torch.autograd.grad(out.pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), weight)
    (expected,) = torch.autograd.grad(F.linear(x, weight, bias).pow(3).sum(), x, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(expected.sum(), weight)[0])
    rows = torch.func.vmap(lambda row: products.onednn_linear(row[None], weight, bias)[0])(x)
    torch.testing.assert_close(rows, F.linear(x, weight, bias))
    again = checkpoint(products.onednn_linear, x, weight, bias, use_reentrant=False)
    found, wanted = (torch.autograd.grad(out.sum(), x)[0] for out in (again, rows))
    torch.testing.assert_close(found, wanted)
    assert counted


def test_kernels_switched_off_before_the_backward_pass(counted):
    arrays = operands((6, 8), 5)
    out = products.onednn_linear(*arrays)
    with _native.switched_off():
        grads = torch.autograd.grad(out.sum(), arrays)
    for got, want in zip(grads, torch.autograd.grad(F.linear(*arrays).sum(), arrays), strict=True):
        torch.testing.assert_close(got, want)
    assert len(counted) == 1


def test_processor():
    """The family is the one that the operating system reports."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    known = dict(reversed([map(str.strip, line.split(":", 1)) for line in lines if ":" in line]))
    is_amd = known.get("vendor_id") == "AuthenticAMD"
    assert _native.library.ember_amd_family() == (int(known["cpu family"]) if is_amd else 0)
