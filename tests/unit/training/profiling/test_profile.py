"""Profiles of any computation: rows, operations, and that nothing stays behind."""

from __future__ import annotations

import contextlib
import threading

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ember_ml import _native, autodiff, nn, ops
from ember_ml._core import runtime
from ember_ml._core.dispatch import OPS
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConcurrentUseError,
    UnknownBackendError,
)
from ember_ml.autodiff.sweep import SweepLog
from ember_ml.backend import use_backend
from ember_ml.interop import to_torch
from ember_ml.nn.flops import count_flops
from ember_ml.training import profile
from ember_ml.training.profiling import Profile, matrix_rate
from ember_ml.training.profiling.machine import dispatch_costs
from ember_ml.training.profiling.operations import GROUPS, group_of

LAYERS = "mamba swiglu attention hyena gru"


def model_and_tokens():
    ops.random.set_seed(0)
    model = nn.models.LanguageModel(LAYERS, 16, 32, max_length=16)
    return model, ops.zeros((2, 8), dtype="int64")


def loss_of(model, tokens):
    return ops.cross_entropy(model(tokens), tokens)


def trained(model, tokens) -> Profile:
    """Return the profile of a gradient."""
    with profile(model) as measured:
        nn.value_and_grad(model, lambda: loss_of(model, tokens))()
    return measured.result


@pytest.mark.usefixtures("backend")
def test_rows_add_up():
    result = trained(*model_and_tokens())
    native = sum(row.seconds for row in result.ops)
    assert native == pytest.approx(result.native)
    assert sum(row.seconds for row in result.groups) == pytest.approx(native)
    assert sum(row.own for row in result.modules) == pytest.approx(native)
    assert sum(row.flops for row in result.groups) == pytest.approx(result.flops)
    modules = {row.name: row for row in result.modules}
    whole, outside = modules["(model)"], modules["(outside of the model)"]
    assert whole.seconds + outside.seconds == pytest.approx(native)
    for name, row in modules.items():
        inside = [other.own for key, other in modules.items() if key.startswith(f"{name}.")]
        if name[0] != "(":
            assert row.seconds == pytest.approx(row.own + sum(inside))
        assert min(row.calls, row.forward, row.backward, row.python, row.own) >= 0
    for name in ("backbone.blocks.0", "backbone.blocks.2", "backbone.blocks.3", "head"):
        assert modules[name].forward > 0
        assert modules[name].backward > 0, name
    linear = next(row for row in result.ops if row.name == "nn.projection.linear")
    assert linear.backward > 0


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kernels", [contextlib.nullcontext, _native.switched_off])
def test_operations_of_a_forward_pass(kernels):
    model, tokens = model_and_tokens()
    model.eval()
    with kernels(), profile(model) as measured:
        model(tokens)
    assert measured.result.flops == pytest.approx(count_flops(model, tokens), rel=1e-6)
    assert measured.result.native > 0
    assert all(row.backward == 0 for row in measured.result.ops)


def test_operations_against_torch():
    """Products and convolutions count as torch counts them, in a forward and a backward pass."""
    with use_backend("torch"):
        tokens = ops.zeros((4, 16), dtype="int64")
        model = nn.models.LanguageModel("attention swiglu", 16, 32)
        with FlopCounterMode(display=False) as counter:
            nn.value_and_grad(model, lambda: loss_of(model, tokens))()
        counts = counter.get_flop_counts()["Global"]
        products = sum(counts.get(op, 0) for op in (torch.ops.aten.mm, torch.ops.aten.addmm))
        linear = next(row for row in trained(model, tokens).ops if row.name.endswith(".linear"))
        biases = sum(x.size for name, x in model.named_parameters() if name.endswith("bias"))
        assert linear.flops == products + 3 * tokens.size * biases
        conv = nn.layers.Conv2D(3, 5, 4, bias=False)
        x = ops.random.normal((2, 11, 9, 3))
        with FlopCounterMode(display=False) as counter:
            conv(x)
        with profile(conv) as measured:
            conv(x)
        row = next(row for row in measured.result.groups if row.name == "convolution")
        assert row.flops == counter.get_total_flops()


def tables():
    """Return everything that a profile replaces."""
    kernels = [
        function
        for op in OPS.values()
        for table in (op.kernels, op.left.floats, op.right.floats, op.right.small)
        for function, _ in table.values()
    ]
    return kernels, [op.vjps for op in OPS.values()], list(runtime.READERS.values())


def test_nothing_stays_behind(backend):
    model, tokens = model_and_tokens()
    trained(model, tokens)  # loads the rules
    before, sweep = tables(), SweepLog.gradient

    def fail():
        with profile(model):
            model(tokens)
            ops.reshape(tokens, (3, 5))

    with pytest.raises(ValueError, match="reshape"):
        fail()
    for new, old in zip(tables(), before, strict=True):
        assert all(x is y for x, y in zip(new, old, strict=True))
    assert SweepLog.gradient is sweep
    assert all(module._hooks is None for module in model.modules())


def test_one_profile_at_a_time(backend):
    """Nested profiles, and profiles of other threads, are refused; a profiler can be used again."""
    layer, x = nn.layers.Dense(4, 4), ops.ones((2, 4))
    layer(x)
    before = tables()
    errors: list[BaseException] = []

    def work():
        try:
            with profile(layer):
                pass
        except ConcurrentUseError as error:
            errors.append(error)

    measured = profile(layer)
    for _ in range(2):
        with measured:
            layer(x)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            work()
        assert [row.calls for row in measured.result.ops if row.name.endswith("linear")] == [1]
    assert len(errors) == 4
    for new, old in zip(tables(), before, strict=True):
        assert all(x is y for x, y in zip(new, old, strict=True))


def test_transforms(backend):
    """Higher-order gradients, Jacobians, vmap and compiled functions work while measured."""
    x = ops.asarray([0.5, -1.0, 2.0])
    options = {} if runtime.load(backend).autodiff.COMPILES_QUICKLY else {"backend": "eager"}
    cubes = autodiff.compile(lambda x: x * x * x, **options)
    with profile() as measured:
        hessian = autodiff.hessian(lambda x: ops.sum(x**3))(x)
        second = autodiff.grad(lambda x: autodiff.grad(lambda y: y * y * y)(x))(x[0])
        rows = autodiff.vmap(lambda x: ops.exp(x) * 2.0)(x)
        compiled = cubes(x)
    assert bool(ops.allclose(hessian, ops.linearalg.diag(6.0 * x), atol=1e-5))
    assert float(second) == pytest.approx(3.0)
    assert bool(ops.allclose(rows, 2.0 * ops.exp(x)))
    assert bool(ops.allclose(compiled, x**3))
    assert bool(ops.allclose(cubes(x), x**3))
    assert measured.result.native > 0


@pytest.mark.usefixtures("backend")
def test_values_are_the_same():
    model, tokens = model_and_tokens()
    tokens = ops.arange(16, dtype="int64").reshape(2, 8)
    loss, grads = nn.value_and_grad(model, lambda: loss_of(model, tokens))()
    with profile(model):
        again, others = nn.value_and_grad(model, lambda: loss_of(model, tokens))()
    assert float(again) == pytest.approx(float(loss), rel=1e-6)
    for name in grads:
        assert bool(ops.allclose(grads[name], others[name], rtol=1e-5, atol=1e-7)), name


def test_other_threads_and_backends_are_not_measured():
    with use_backend("numpy"):
        x = ops.ones((4, 4))

        def work():
            with use_backend("numpy"):
                ops.matmul(x, x)

        with profile() as measured:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            with use_backend("torch"):
                ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))
            ops.exp(x)
    assert [(row.name, row.calls) for row in measured.result.ops] == [("exponential.exp", 1)]
    assert measured.result.modules[0].name == "(outside of the model)"


def test_backward_passes_of_other_threads_are_not_measured():
    started, resume = threading.Event(), threading.Event()

    @autodiff.custom_gradient
    def slow(x):
        def gradient(g):
            started.set()
            assert resume.wait(10)
            return g

        return x * 1.0, gradient

    def work():
        with use_backend("numpy"):
            autodiff.grad(lambda x: ops.sum(slow(x)))(ops.ones((2,)))

    with use_backend("numpy"):
        x = ops.ones((4, 4))
        with profile() as measured:
            thread = threading.Thread(target=work)
            thread.start()
            assert started.wait(10)
            ops.exp(x)
            resume.set()
            thread.join()
    (row,) = measured.result.ops
    assert (row.name, row.calls, row.backward) == ("exponential.exp", 1, 0)


def test_a_profile_within_itself_is_refused(backend):
    """The outer block still measures, with and without the memory."""
    x = ops.ones((4,))
    for memory in (False, True):
        measured = profile(memory=memory)
        with measured:
            ops.exp(x)
            with pytest.raises(ConcurrentUseError), measured:
                pass
            ops.exp(x)
        assert [row.calls for row in measured.result.ops] == [2]
        assert bool(measured.result.memory) is memory


def test_a_block_that_fails_has_no_result():
    measured = profile()
    with measured:
        ops.ones((2,))
    assert measured.result

    def fail():
        with measured:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    with pytest.raises(ArgumentError, match="unless the block raises an error"):
        _ = measured.result


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_matrix_product_has_the_dtype_of_the_model(dtype):
    with use_backend("torch"):
        layer = nn.layers.Dense(4, 4).to(dtype=dtype)
        with profile(layer) as measured:
            layer(ops.astype(ops.ones((2, 4)), dtype))
    assert measured.result.peak.dtype == dtype


def test_other_backends_have_their_own_device_and_name():
    layer = nn.layers.Dense(4, 4)
    with profile(layer, backend="torch") as measured:
        pass
    assert (measured.result.backend, measured.result.peak.dtype) == ("torch", "float32")
    with pytest.raises(UnknownBackendError, match="did you mean 'torch'"):
        profile(backend="torhc")


@pytest.mark.usefixtures("backend")
def test_positions_that_are_left_out_are_not_measured():
    """A profile measures the calls of the same computation without it."""
    model = nn.models.LanguageModel("gru hyena swiglu", 16, 32, max_length=8).eval()
    tokens, at = ops.zeros((2, 8), dtype="int64"), ops.asarray([3])
    with profile(model) as measured:
        logits = model(tokens, at=at)
    assert bool(ops.allclose(logits, model(tokens, at=at)))
    assert measured.result.flops == pytest.approx(count_flops(model, tokens, at=at), rel=1e-6)
    assert measured.result.flops < 0.9 * count_flops(model, tokens)
    rows = {row.name: row for row in measured.result.modules}
    assert rows["backbone.blocks.1.layer"].forward > 0
    assert rows["backbone.blocks.1.layer"].seconds < rows["backbone.blocks.1"].seconds


def test_calls_that_are_left_to_the_body_count_as_its_ops():
    """A native function that returns None has not computed anything."""
    with use_backend("numpy"):
        x = ops.ones((1, 2, 5, 4))
        with _native.switched_off(), profile() as measured:
            ops.gated_linear_attention(x, x, x)
    names = [row.name for row in measured.result.ops]
    assert names
    assert "linear_attention._attend" not in names


def test_modules_of_a_torch_module():
    """Ember modules inside a torch module are listed, and reach it while they are measured."""
    with use_backend("torch"):
        model = nn.Sequential(nn.layers.Dense(4, 4), nn.layers.Dense(4, 2))
        module = to_torch(model)
        with profile(model) as measured:
            module(torch.ones(2, 4))
            model(ops.ones((2, 4)))
            assert to_torch(model) is module
    rows = {row.name: row for row in measured.result.modules}
    assert {name: row.calls for name, row in rows.items() if name != "(outside of the model)"} == {
        "(model)": 4,
        "0": 2,
        "1": 2,
    }


@pytest.mark.usefixtures("backend")
def test_memory():
    with profile(memory=True) as measured:
        kept = [ops.ones((250_000,)) * float(n) for n in range(3)]
        runtime.LOADED[kept[0]._backend].synchronize()
    assert measured.result.memory["peak"] >= 3_000_000


@pytest.mark.usefixtures("backend")
def test_random_numbers_are_drawn_once():
    layer = nn.layers.Dropout(0.5)
    x = ops.ones((64,))
    ops.random.set_seed(3)
    first, second = layer(x), layer(x)
    ops.random.set_seed(3)
    with profile(layer):
        drawn = layer(x)
    assert bool(ops.all(drawn == first))
    assert bool(ops.all(layer(x) == second))


@pytest.mark.usefixtures("backend")
def test_awkward_calls():
    """Empty arrays, scalars, NaN, complex numbers, views and half precision are measured too."""
    with profile() as measured:
        ops.sum(ops.zeros((0, 3)), axis=0)
        ops.add(ops.asarray(1.0), 2)
        ops.exp(ops.full((2,), float("nan")))
        ops.abs(ops.fft.rfft(ops.ones((4,))))
        ops.matmul(ops.ones((3, 2)).T, ops.broadcast_to(ops.ones((1, 2)), (3, 2)))
        ops.exp(ops.astype(ops.ones((2,)), "float16"))
        _ = ops.ones((4, 4))[1:, ::-1]
        ops.concat([ops.ones((2,)), ops.ones((0,))])
    result = measured.result
    assert {"reduction.sum", "fft.rfft", "contraction.matmul"} <= {row.name for row in result.ops}
    assert all(row.flops >= 0 for row in result.ops)
    assert "contraction.matmul" in str(result)


def test_machine(backend):
    rate = matrix_rate(backend, "float32")
    assert rate.flops > 0
    assert rate.dtype == "float32"
    layer, x = nn.layers.Dense(64, 64).to(dtype="float16"), ops.ones((256, 64), dtype="float16")
    layer(x)
    with profile(layer) as measured:
        for _ in range(20):
            layer(x)
    assert measured.result.share_of_peak < 2  # the product of the layer itself
    for recorded in (False, True):
        costs = dispatch_costs(backend, recorded=recorded)
        assert set(costs) == {"unary", "binary", "reduction", "general"}
        assert all(cost >= 0 for cost in costs.values())


def test_groups_are_those_of_ops():
    families = {op.family for op in OPS.values()} | set(OPS)
    for name in GROUPS:
        assert any(each == name or each.startswith(f"{name}.") for each in families), name
    assert group_of("nn.attention.attend") == "attention"
    assert group_of("nn.projection.embedding") == "indexing and copies"


def test_errors():
    with pytest.raises(ArgumentTypeError, match="the model must be a Module"):
        profile("model")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="after the with block"):
        _ = profile().result
