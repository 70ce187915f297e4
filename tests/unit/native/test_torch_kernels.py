"""The C kernels on torch: results and gradients against torch's own functions in float64."""

import contextlib
import re
import weakref

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

from ember_ml import _native, ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml._native.calls import Kernel
from ember_ml._native.frame import Frame
from ember_ml.backend.torch import long_convolution
from ember_ml.backend.torch.ops import _kernel_calls as kernel_calls
from ember_ml.backend.torch.ops import special
from ember_ml.backend.torch.ops.nn import classification, gating, projection
from tests.unit.native.cases import CASES, SIZES, check, expected, operands, run_torch

NAMES = [name for name in sorted(CASES) if "_conv" in name or name.startswith("rotary_heads")]
NAMES += ["cross_entropy", "cross_entropy_smoothed", "rms_norm", "silu_gate", "softplus", "swiglu"]
NAMES += [name for name in sorted(CASES) if name.startswith("softplus_linear") and "17" not in name]
ONE_EACH = ["swiglu", "silu_gate", "cross_entropy", "rms_norm", "rotary_heads", "gated_long_conv"]
ONE_EACH += ["causal_conv1d_4", "causal_conv1d_silu_4", "softplus_linear_4"]


@pytest.fixture
def called(every_size):
    """Names of the kernels that were called."""
    names = set()
    original = Kernel.__call__

    def call(self, suffix, *arguments):
        names.add(self.names[suffix])
        original(self, suffix, *arguments)

    def call_frame(self, name, *arguments):
        names.add(name)
        original_frame(self, name, *arguments)

    original_frame = Frame.call
    every_size.setattr(Kernel, "__call__", call)
    every_size.setattr(Frame, "call", call_frame)
    every_size.setattr(kernel_calls, "SMALL", 1)
    every_size.setattr(classification, "_LEAST", 1)
    every_size.setattr(gating, "_SMALL", 1)
    every_size.setattr(projection, "_SMALL", 1)
    every_size.setattr(special, "_LARGE", 1)
    return names


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_dtypes(called, name):
    for n in SIZES:
        for dtype in ("float32", "float64"):
            check(CASES[name], [x.astype(dtype) for x in operands(CASES[name], n)], run_torch)
    assert called


@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_threads(called, name):
    first, *others = operands(CASES[name], 33)
    axes = range(first.ndim - 1)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for axis in axes:
                array = np.ascontiguousarray(first.swapaxes(axis, -1)).swapaxes(axis, -1)
                check(CASES[name], [array, *others], run_torch)
            check(CASES[name], [np.repeat(first, 2, -1)[..., ::2], *others], run_torch)
    finally:
        torch.set_num_threads(before)


class _Mode(TorchDispatchMode):
    """Mode that sees every op, and changes none."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("context", [_native.switched_off, _Mode])
def test_backward_pass_without_kernels(called, name, context):
    """Kernels that are switched off, or a dispatch mode that starts, after the forward pass."""
    case = CASES[name]
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(case, 20)]
    out = case.function(*[Tensor.from_native(x, "torch") for x in leaves]).native
    total = out.sum()
    called.clear()
    with context():
        grads = torch.autograd.grad(total, leaves)
    assert not called
    reference = torch.autograd.grad(case.reference(*leaves).sum(), leaves)
    for got, wanted in zip(grads, reference, strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("name", ["gated_long_conv", "gated_long_conv_masked"])
def test_gates_of_long_sequences(called, name):
    """Kernels of the gates, for filters by FFT."""
    kernels = {f"ember_gate_parts{part}" for part in ("", "_adjoint")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_convolution, "SHORT", 0)
        for n in (1, 7, 65):
            check(CASES[name], operands(CASES[name], n), run_torch)
    assert kernels <= called


@pytest.mark.parametrize("name", NAMES)
def test_in_a_checkpoint_of_torch(called, name):
    runtime.load("torch")
    arrays = operands(CASES[name], 20)
    leaves = [torch.from_numpy(x).requires_grad_() for x in arrays]

    def function(*tensors):
        result = CASES[name].function(*[Tensor.from_native(x, "torch") for x in tensors])
        return sum(part.native.square().sum() for part in ops_results(result))

    total = torch.utils.checkpoint.checkpoint(function, *leaves, use_reentrant=False)
    grads = torch.autograd.grad(total, leaves)
    wanted = torch.autograd.grad(function(*leaves), leaves)
    assert called
    torch.testing.assert_close(grads, wanted)


def ops_results(result):
    """Return the results of an op as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("name", NAMES)
def test_default_device(called, name):
    """Results are where the operands are, whatever the default device is."""
    arrays = operands(CASES[name], 20)
    with torch.device("meta"):
        results = run_torch(CASES[name], arrays)
    assert called
    for got, wanted in zip(results, expected(CASES[name], arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", ONE_EACH)
def test_compilers_transforms_and_modes_see_torch_ops(called, name):
    from torch._subclasses.fake_tensor import FakeTensorMode

    case = CASES[name]
    leaves = [torch.from_numpy(x) for x in operands(case, 20)]

    def function(*tensors):
        return case.function(*[Tensor.from_native(x, "torch") for x in tensors]).native

    exported = torch.export.export(_Module(function), tuple(leaves)).module()
    torch.testing.assert_close(exported(*leaves), case.reference(*leaves))
    with FakeTensorMode() as mode:
        fake = function(*[mode.from_tensor(x) for x in leaves])
    assert tuple(fake.shape) == tuple(case.reference(*leaves).shape)
    derivative = torch.func.jvp(function, tuple(leaves), tuple(leaves))[1]
    torch.testing.assert_close(
        derivative, torch.func.jvp(case.reference, tuple(leaves), tuple(leaves))[1]
    )
    assert not called


def _softplus_linear(*tensors):
    return ops.softplus_linear(*[Tensor.from_native(x, "torch") for x in tensors]).native


def test_second_derivatives_of_softplus_linear(called):
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(CASES["softplus_linear_4"], 5)]
    assert torch.autograd.gradcheck(_softplus_linear, leaves)
    assert torch.autograd.gradgradcheck(_softplus_linear, leaves)
    assert called


def test_result_that_is_changed_before_the_backward_pass(called):
    """The adjoint reads the result, so a change in place must be an error."""
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(CASES["softplus_linear_4"], 5)]
    out = _softplus_linear(*leaves)
    with torch.no_grad():
        out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_result_is_freed_with_its_last_reference(called):
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(CASES["softplus_linear_4"], 5)]
    out = weakref.ref(_softplus_linear(*leaves))
    assert out() is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_uses_torch_ops(called, dtype):
    leaves = [torch.from_numpy(x).to(dtype) for x in operands(CASES["softplus_linear_4"], 20)]
    out = _softplus_linear(*leaves)
    assert out.dtype is dtype
    assert not called
    assert torch.equal(out, CASES["softplus_linear_4"].reference(*leaves))


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_inside_autocast(called, name):
    """They are those of the code without kernels."""
    arrays, dtypes = [torch.from_numpy(x).float() for x in operands(CASES[name], 7)], []
    for context in (contextlib.nullcontext, _native.switched_off):
        with torch.autocast("cpu", torch.bfloat16), context():
            result = CASES[name].function(*[Tensor.from_native(x, "torch") for x in arrays])
        dtypes.append([part.native.dtype for part in ops_results(result)])
    assert dtypes[0] == dtypes[1]


def test_autocast_chooses_the_precision(called):
    leaves = [torch.from_numpy(x).float() for x in operands(CASES["softplus_linear_4"], 20)]
    with torch.autocast("cpu", torch.bfloat16):
        assert _softplus_linear(*leaves).dtype is torch.bfloat16
    assert not called


def _heads(x, *, offset=3):
    parts = ops.rotary_heads(Tensor.from_native(x, "torch"), 4, 2, offset=offset)
    return [part.native for part in parts]


def test_derivatives_of_rotary_heads_of_any_order(called):
    """The transpose of the kernel is differentiated by the kernel."""
    x = torch.randn(2, 5, 48, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(_heads, (x,))
    assert torch.autograd.gradgradcheck(_heads, (x,))
    assert called == {"ember_rotary_heads", "ember_rotary_heads_adjoint"}
    called.clear()
    with _native.switched_off():
        assert torch.autograd.gradgradcheck(_heads, (x,))
    assert not called


@pytest.mark.parametrize("at", [0, 1, 2])
def test_gradient_of_one_part_of_rotary_heads(called, at):
    x = torch.randn(2, 5, 48, requires_grad=True)
    (got,) = torch.autograd.grad(_heads(x)[at].square().sum(), x)
    assert "ember_rotary_heads_adjoint" in called
    with _native.switched_off():
        (wanted,) = torch.autograd.grad(_heads(x)[at].square().sum(), x)
    torch.testing.assert_close(got, wanted)


def test_layout_and_memory_of_rotary_heads(called):
    """Attention returns the layout of the queries; x is not kept for the backward pass."""
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda x: x):
        parts = _heads(torch.randn(2, 5, 48, requires_grad=True))
    assert all(part.transpose(1, 2).is_contiguous() and part._base is None for part in parts)
    assert not saved


def test_rotary_heads_before_the_first_position(called):
    x = torch.randn(2, 5, 48)
    parts = _heads(x, offset=-2)
    assert not called
    for part, later in zip(parts, _heads(x[:, 2:], offset=0), strict=True):
        torch.testing.assert_close(part[:, :, 2:], later)


TARGETS = {
    "classes": [3, 0, 4, 1, 0, 2],
    "some ignored": [3, -100, 4, -100, 0, 2],
    "ignored class": [3, 2, 2, 1, 0, 2],
    "all ignored": [-100] * 6,
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_against_torch(called, kind, reduction, axis, smoothing):
    x = torch.randn(2, 5, 3) if axis == 1 else torch.randn(2, 3, 5)
    x.requires_grad_()
    targets = torch.tensor(TARGETS[kind], dtype=torch.int32).reshape(2, 3)
    options = {"ignore_index": 2 if kind == "ignored class" else -100, "reduction": reduction}
    options["label_smoothing"] = smoothing
    got = classification.cross_entropy(x, targets, axis=axis, **options)
    wanted = torch.nn.functional.cross_entropy(x.movedim(axis, 1), targets.long(), **options)
    g = torch.randn_like(wanted)
    torch.testing.assert_close(got, wanted, equal_nan=True)
    grads = [torch.autograd.grad(y, x, g, create_graph=True)[0] for y in (got, wanted)]
    torch.testing.assert_close(*grads, equal_nan=True)
    seconds = [torch.autograd.grad(each.square().sum(), x)[0] for each in grads]
    torch.testing.assert_close(*seconds, equal_nan=True)
    assert called or (kind == "all ignored" and reduction == "mean")


@pytest.mark.parametrize("values", [[-np.inf, 1.0], [np.inf, 1.0], [np.nan, 1.0], [1e30, -1e30]])
def test_cross_entropy_of_extreme_logits(called, values):
    x = torch.randn(4, 9)
    x[1, :2] = torch.tensor(values)
    x.requires_grad_()
    targets = torch.tensor([1, 2, 3, 4])
    results = []
    for function in (classification.cross_entropy, torch.nn.functional.cross_entropy):
        loss = function(x, targets, reduction="none")
        results.append((loss, torch.autograd.grad(loss.sum(), x)[0]))
    torch.testing.assert_close(*results, equal_nan=True)
    assert called


@pytest.mark.parametrize("wrong", [-1, 5, -101])
def test_targets_that_are_no_classes(called, wrong):
    with pytest.raises(IndexError):
        classification.cross_entropy(torch.randn(2, 5), torch.tensor([1, wrong]))
    assert not called


def test_targets_that_are_changed_before_the_backward_pass(called):
    """The adjoint writes at the targets, so they must be those that were checked."""
    targets = torch.tensor([1, 2])
    loss = classification.cross_entropy(torch.randn(2, 5, requires_grad=True), targets)
    targets.fill_(1 << 40)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


class _Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


@pytest.mark.parametrize("name", [*ONE_EACH, "long_conv", "softplus"])
def test_gradients_of_several_cotangents_at_once(called, name):
    """`vmap` over `torch.autograd.grad`, and its argument `is_grads_batched`."""
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(CASES[name], 20)]
    result = CASES[name].function(*[Tensor.from_native(x, "torch") for x in leaves])
    out = ops_results(result)[0].native
    g = torch.randn(2, *out.shape, dtype=out.dtype)

    def pull(g, **options):
        return torch.autograd.grad(out, leaves, g, retain_graph=True, **options)

    rows = [pull(each) for each in g]
    wanted = tuple(torch.stack(each) for each in zip(*rows, strict=True))
    assert called
    torch.testing.assert_close(torch.func.vmap(pull)(g), wanted)
    torch.testing.assert_close(pull(g, is_grads_batched=True), wanted)


@pytest.mark.parametrize(
    "name", ["swiglu", "silu_gate", "gated_long_conv", "long_conv", "softplus"]
)
def test_result_can_change_in_place(called, name):
    leaves = [torch.from_numpy(x).requires_grad_() for x in operands(CASES[name], 20)]
    out = CASES[name].function(*[Tensor.from_native(x, "torch") for x in leaves]).native
    assert called
    before = out.detach().clone()
    torch.testing.assert_close(out.mul_(2.0), 2 * before)
    wanted = torch.autograd.grad(2 * CASES[name].reference(*leaves).sum(), leaves)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), leaves), wanted)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", ["linear_recurrence", "selective_scan"])
def test_forward_over_reverse_derivative_of_scans(name):
    """Product of the second derivatives with a vector, against double backward."""
    from torch.autograd import forward_ad

    shape = (1, 20, 4)
    a, *others = (torch.rand(shape, dtype=torch.float64) for _ in range(6))
    v, scan = torch.rand_like(a), getattr(ops, name)

    def value(a):
        rest = [others[0]] if name == "linear_recurrence" else [others[1], -others[2][0, :4]]
        rest += [] if len(rest) == 1 else others[3:]
        result = scan(*[Tensor.from_native(x, "torch") for x in (a, *rest)])
        return ops_results(result)[0].native.square().sum() + a.pow(3).sum()

    leaf = a.clone().requires_grad_()
    (first,) = torch.autograd.grad(value(leaf), leaf, create_graph=True)
    (wanted,) = torch.autograd.grad(first, leaf, v)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(a.clone().requires_grad_(), v)
        (first,) = torch.autograd.grad(value(dual), dual)
        torch.testing.assert_close(forward_ad.unpack_dual(first).tangent, wanted)


def test_mask_from_a_finished_transform(called):
    masks = []
    torch.func.grad(lambda x: (masks.append(x > 0), x.sum())[1])(torch.ones(2, 16))
    x, weight, bias, kernel = (torch.randn(s) for s in ((2, 12, 16), (12, 3), (12,), (4, 16)))
    arrays = [Tensor.from_native(each, "torch") for each in (x, weight, bias, kernel)]
    wanted = ops.gated_long_conv(*arrays).native
    got = ops.gated_long_conv(*arrays, Tensor.from_native(masks[0], "torch")).native
    torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("length", [16, 600])
def test_mask_that_is_changed_before_the_backward_pass(called, length):
    x, weight, bias, kernel = (torch.randn(s) for s in ((2, 12, length), (12, 3), (12,), (4, 16)))
    mask, grads = torch.arange(length) < torch.tensor([[5], [length]]), []
    for change in (False, True):
        leaf, given = x.clone().requires_grad_(), mask.clone()
        arrays = [Tensor.from_native(each, "torch") for each in (leaf, weight, bias, kernel, given)]
        out = ops.gated_long_conv(*arrays).native
        given.logical_or_(torch.tensor(change))
        grads.append(torch.autograd.grad(out.square().sum(), leaf))
    assert called
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("options", [{"reduction": "avg"}, {"ignore_index": 2**64 + 3}], ids=str)
def test_wrong_options_of_cross_entropy(called, options):
    x, targets = (
        Tensor.from_native(each, "torch") for each in (torch.randn(4, 9), torch.arange(4))
    )
    with _native.switched_off(), pytest.raises((ValueError, OverflowError)) as without:
        ops.cross_entropy(x, targets, **options)
    with pytest.raises(type(without.value), match=re.escape(str(without.value))):
        ops.cross_entropy(x, targets, **options)
    assert not called
