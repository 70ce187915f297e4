"""C kernels of recurrences against loops over the steps, values and gradients; and without them."""

from __future__ import annotations

import contextlib
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import GradientTape, _native, ops, use_backend
from ember_ml._native import calls
from ember_ml.backend.native_products import weight_gradient
from ember_ml.backend.numpy import native
from ember_ml.backend.torch import linear_attention, opaque_cells, synapses
from ember_ml.backend.torch import native as torch_native
from ember_ml.backend.torch.ops import recurrence, selective_scan
from ember_ml.backend.torch.ops.nn import spiking
from ember_ml.nn import tensor
from tests.unit.native.recurrence_cases import CASES, Case

LENGTHS = (1, 7, 63, 64, 65, 100, 257)
SERVED = [(each, name) for name, case in CASES.items() for each in _native.BACKENDS_OF_OP[case.op]]
TOLERANCES = {"float32": 2e-4, "float64": 1e-10}


@pytest.fixture
def threads(monkeypatch):
    """Return a function that sets the number of threads, also for little work."""
    if _native.library is None:
        pytest.fail(f"the tests need the C kernels: {_native.status()}")
    monkeypatch.setattr(calls, "GRAIN", 1)
    monkeypatch.setattr(synapses, "_SMALL", 1)
    before = torch.get_num_threads()

    def choose(count: int) -> None:
        monkeypatch.setattr(_native, "threads", count)
        torch.set_num_threads(count)

    yield choose
    torch.set_num_threads(before)


def drawn(case: Case, batch: int, time: int, dtype: str, seed: int = 0) -> list[Any]:
    arrays = case.operands(np.random.default_rng(seed), batch, time)
    real = lambda x: isinstance(x, np.ndarray) and x.dtype == np.float64
    return [x.astype(dtype) if real(x) else x for x in arrays]


def as_list(outs: Any) -> list[Any]:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


def is_real(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def expected(case: Case, arrays: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the results of the reference, random gradients of them, and those of the operands."""
    wide = lambda x: x if case.exact or not is_real(x) else x.astype(np.float64)
    leaves = [None if x is None else torch.tensor(wide(x)) for x in arrays]
    sources = [x.requires_grad_() for x in leaves if x is not None and x.is_floating_point()]
    options = {{"surrogate": "surrogate_name"}.get(k, k): v for k, v in case.options.items()}
    outs = as_list(case.reference(*leaves, **options))
    rng = np.random.default_rng(1)
    cotangents = [rng.standard_normal(tuple(x.shape)) for x in outs]
    given = [torch.tensor(g).to(x.dtype) for g, x in zip(cotangents, outs, strict=True)]
    grads = torch.autograd.grad(outs, sources, given, allow_unused=True)
    zero = lambda g, x: np.zeros(x.shape) if g is None else g.numpy()
    values = [x.detach().numpy() for x in outs]
    return values, cotangents, [zero(g, x) for g, x in zip(grads, sources, strict=True)]


def computed(case: Case, arrays: list[Any], cotangents: list[Any] | None = None) -> Any:
    """Return the results of the op, and the gradients of the operands."""
    operands = [None if x is None else tensor.convert_to_tensor(x) for x in arrays]
    sources = [x for x, a in zip(operands, arrays, strict=True) if is_real(a)]
    op = getattr(ops, case.op)
    with GradientTape() as tape:
        tape.watch(sources)
        outs = as_list(op(*operands, **case.options))
    rng = np.random.default_rng(1)
    given = cotangents or [rng.standard_normal(x.shape) for x in outs]
    grads = tape.gradient(
        outs,
        sources,
        [tensor.array(np.asarray(g, x.numpy().dtype)) for g, x in zip(given, outs, strict=True)],
    )
    zero = lambda g, x: np.zeros(x.shape) if g is None else g.numpy()
    return [x.numpy() for x in outs], [zero(g, x) for g, x in zip(grads, sources, strict=True)]


def compare(case: Case, arrays: list[Any], dtype: str, wanted: Any = None) -> None:
    """Compare the op with the reference, or with results of the reference that are given."""
    values, cotangents, grads = wanted or expected(case, arrays)
    outs, found = computed(case, arrays, cotangents)
    tolerance = TOLERANCES[dtype]
    for got, want in zip((*outs, *found), (*values, *grads), strict=True):
        assert got.dtype == dtype
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", CASES)
def test_against_a_loop(threads, name):
    case = CASES[name]
    wide = "wide" in name or "first" in name
    for at, length in enumerate((1, 7, 65) if wide else LENGTHS):
        threads((1, 2, 4)[at % 3])
        batch = 1 if length == 63 else 9 if length == 7 else 3
        narrow = drawn(case, batch, length, "float32", seed=at)
        wanted = None if case.exact else expected(case, narrow)  # of both dtypes
        for dtype in TOLERANCES:
            arrays = [x.astype(dtype) if is_real(x) else x for x in narrow]
            for backend_name in _native.BACKENDS_OF_OP[case.op]:
                with use_backend(backend_name):
                    compare(case, arrays, dtype, wanted)


@pytest.mark.parametrize(("backend_name", "name"), SERVED)
def test_without_the_kernels(backend_name, name):
    with use_backend(backend_name), _native.switched_off():
        compare(CASES[name], drawn(CASES[name], 2, 7, "float32"), "float32")


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
def test_threads(threads, backend_name, count):
    """Any number of threads computes the same."""
    for name in CASES:
        with use_backend(backend_name):
            arrays = drawn(CASES[name], 5, 20, "float64")
            threads(1)
            one = computed(CASES[name], arrays)
            threads(count)
            for got, want in zip(chain(*computed(CASES[name], arrays)), chain(*one), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_widths_of_linear_recurrences(threads):
    """States of narrow rows stay in registers, in groups of vectors; the rest are in memory."""
    threads(2)
    rng = np.random.default_rng(0)
    for width in (8, 15, 16, 31, 33, 63, 64, 65, 100, 121, 128, 129, 260):
        arrays = [rng.uniform(-1, 1, (2, 20, width)), rng.standard_normal((2, 20, width))]
        with use_backend("numpy"):
            compare(CASES["linear"], [*arrays, rng.standard_normal((2, width))], "float64")
            compare(CASES["linear"], [x.astype(np.float32) for x in arrays], "float32")


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
def test_gradients_that_do_not_fit_into_the_cache(threads, backend_name):
    """Large gradients are written past the cache."""
    threads(2)
    rng = np.random.default_rng(0)
    shape = (64, 64, 432)
    arrays = [rng.uniform(0.5, 1, shape), rng.standard_normal(shape)]
    with use_backend(backend_name):
        compare(CASES["linear"], [x.astype(np.float32) for x in arrays], "float32")


@pytest.mark.parametrize(
    ("rows", "width", "depth"),
    [
        (1, 6, 1),
        (127, 7, 15),
        (128, 12, 16),
        (129, 11, 17),
        (300, 40, 33),
        (257, 64, 80),
        (9, 5, 3),
    ],
)
def test_gradients_of_weights(threads, rows, width, depth):
    """Sums over the rows of products of all sizes, with the framework's product for narrow ones."""
    rng = np.random.default_rng(0)
    dz, entries = rng.standard_normal((rows, width)), rng.standard_normal((rows, depth))
    wanted = dz.T @ entries
    for count in (1, 2, 4):
        threads(count)
        for dtype, tolerance in TOLERANCES.items():
            pair = dz.astype(dtype), entries.astype(dtype)
            both = {native.frame(pair[0]): pair}
            tensors = [torch.from_numpy(x) for x in pair]
            both[torch_native.frame(tensors[0])] = tensors
            for frame, (a, b) in both.items():
                found = weight_gradient(frame, a, b)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=20 * tolerance)


def layouts(x: Any) -> list[Any]:
    """Return the same values with other strides, and read-only."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        return [x] * 4
    negative = np.ascontiguousarray(x[::-1])[::-1]
    gaps = np.repeat(x[..., None], 2, -1)[..., 0]
    fixed = x.copy()
    fixed.flags.writeable = False
    return [np.asfortranarray(x), negative, gaps, fixed]


@pytest.mark.parametrize(("backend_name", "name"), SERVED)
def test_strides(backend_name, name):
    for batch in (3, 9):  # the kernel of the LSTM differs from a batch of 8 on
        arrays = drawn(CASES[name], batch, 17, "float64")
        with use_backend(backend_name):
            want = computed(CASES[name], arrays)
            if backend_name == "numpy":
                found = [
                    computed(CASES[name], list(x)) for x in zip(*map(layouts, arrays), strict=True)
                ]
            else:
                found = [
                    computed_native(CASES[name], list(map(change, arrays))) for change in CHANGES
                ]
            for got in found:
                for one, other in zip(chain(*got), chain(*want), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def transposed(x: Any) -> Any:
    """Return a torch tensor with the last two axes swapped in memory."""
    if not is_real(x):
        return x
    return torch.tensor(x).mT.contiguous().mT if x.ndim > 1 else torch.tensor(x)


def spread(x: Any) -> Any:
    """Return a torch tensor with gaps in memory."""
    return torch.tensor(x).repeat_interleave(2, -1)[..., ::2] if is_real(x) else x


CHANGES = (transposed, spread)


def computed_native(case: Case, arrays: list[Any]) -> Any:
    """Return the results and gradients for torch tensors, with their strides."""
    sources = [x.requires_grad_() for x in arrays if isinstance(x, torch.Tensor)]
    operands = [None if x is None else tensor.convert_to_tensor(x) for x in arrays]
    outs = [x.native for x in as_list(getattr(ops, case.op)(*operands, **case.options))]
    rng = np.random.default_rng(1)
    cotangents = [torch.tensor(rng.standard_normal(tuple(x.shape))) for x in outs]
    grads = torch.autograd.grad(outs, sources, cotangents, allow_unused=True)
    zero = lambda g, x: np.zeros(x.shape) if g is None else g.numpy()
    return [x.detach().numpy() for x in outs], [
        zero(g, x) for g, x in zip(grads, sources, strict=True)
    ]


@pytest.mark.parametrize(("backend_name", "name"), SERVED)
def test_empty(backend_name, name):
    for batch, time in ((2, 0), (0, 3), (0, 0)):
        arrays = drawn(CASES[name], batch, time, "float32")
        with use_backend(backend_name):
            found = computed(CASES[name], arrays)
            with _native.switched_off():
                wanted = computed(CASES[name], arrays)
        for got, want in zip(chain(*found), chain(*wanted), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
def test_extreme_decays(backend_name):
    rng = np.random.default_rng(0)
    decays = [0.0, 1.0, 1e-30, float(np.exp(-100.0)), 1e-38, -1.0]
    a = np.broadcast_to(np.array(decays, np.float32)[None, None], (2, 300, 6)).copy()
    b = rng.standard_normal((2, 300, 6)).astype(np.float32)
    with use_backend(backend_name):
        compare(CASES["linear"], [a, b, b[:, 0]], "float32")
        u, dt, rates, write, read, skip = drawn(CASES["selective"], 2, 100, "float32")
        for step, rate in ((1e-30, 1.0), (100.0, 1.0), (1.0, 1e6), (0.0, 1.0)):
            arrays = [u, step + 0 * dt, rate * rates, write, read, skip]
            values, cotangents, grads = expected(CASES["selective"], arrays)
            outs, found = computed(CASES["selective"], arrays, cotangents)
            for got, want in zip((*outs, *found), (*values, *grads), strict=True):
                assert np.isfinite(got).all()
                scale = np.abs(want).max() + 1e-30
                np.testing.assert_allclose(got / scale, want / scale, atol=1e-3)


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
def test_nan_and_infinity(backend_name):
    """They spread as in the code without kernels."""
    spiking = ("lif", "lif wide, hard", "adaptive, no reset")
    for name in ("linear", "selective", "lstm", "gru", "closed form", "liquid", *spiking):
        for value in (np.nan, np.inf, -np.inf):
            arrays = drawn(CASES[name], 2, 6, "float32")
            arrays[0][0, 2, 0] = value
            with use_backend(backend_name), np.errstate(all="ignore"):
                outs = computed(CASES[name], arrays)[0]
                with _native.switched_off():
                    wanted = computed(CASES[name], arrays)[0]
            for got, want in zip(outs, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
@pytest.mark.parametrize(
    "name",
    [
        *("linear", "selective", "attention, bonus", "delta rule, gated"),
        *("adaptive", "lstm", "closed form", "liquid"),
    ],
)
def test_switched_off_between_the_passes(backend_name, name):
    case, outs = CASES[name], []
    for first, second in ((False, True), (True, False), (False, False)):
        arrays = drawn(case, 2, 20, "float64")
        with use_backend(backend_name):
            operands = [None if x is None else tensor.array(x) for x in arrays]
        sources = [x for x in operands if x is not None]
        with GradientTape() as tape, _native.switched_off() if first else contextlib.nullcontext():
            tape.watch(sources)
            out = as_list(getattr(ops, case.op)(*operands, **case.options))[0]
        with _native.switched_off() if second else contextlib.nullcontext():
            outs.append([g.numpy() for g in tape.gradient(out, sources)])
    for other in outs[:2]:
        for got, want in zip(other, outs[2], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def leaves(name: str, dtype: str = "float64") -> list[Any]:
    arrays = drawn(CASES[name], 2, 20, dtype)
    make = lambda x: torch.tensor(x).requires_grad_() if is_real(x) else torch.tensor(x)
    return [None if x is None else make(x) for x in arrays]


OPAQUE = {
    "linear": (recurrence._opaque, (1, False)),
    "selective": (selective_scan._opaque, (None,)),
    "adaptive": (spiking._opaque, ("soft", 0, "atan", 2.0)),
    "synaptic, masked": (spiking._opaque, ("hard", 0, "sigmoid", 2.0)),
    "lstm": (opaque_cells.lstm.run, (False,)),
    "gru": (opaque_cells.gru.run, (False,)),
    "closed form": (opaque_cells.closed_form.run, (True,)),
    "gru without biases": (opaque_cells.gru.run, (None, None, False)),
    "closed form with timespans": (opaque_cells.closed_form.run, (True,)),
    "liquid": (opaque_cells.liquid.run, (False,)),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_custom_ops(name):
    op, options = OPAQUE[name]
    torch.library.opcheck(op, (*leaves(name), *options))


def test_every_custom_op_is_checked():
    """Those of the C kernels; adjoints run in the check of the ops that they belong to."""
    names = {name for name in torch._C._dispatch_get_all_op_names() if "ember_ml::" in name}
    own = {name for name in names if "::triton_" not in name and not name.endswith("_adjoint")}
    checked = {op._opoverload._schema.name for op, _ in OPAQUE.values()}
    assert own == checked | {linear_attention._opaque._opoverload._schema.name}


@pytest.mark.parametrize("name", OPAQUE)
def test_compiled(name):
    torch._dynamo.reset()
    case, arrays = CASES[name], leaves(name, "float32")
    sources = [x for x in arrays if x is not None and x.requires_grad]

    def loss(*given):
        operands = [None if x is None else tensor.convert_to_tensor(x) for x in given]
        outs = as_list(getattr(ops, case.op)(*operands, **case.options))
        return sum((out.native * (at + 1)).sum() for at, out in enumerate(outs))

    with use_backend("torch"):
        tensor.array(0.0)
        plain = torch.autograd.grad(loss(*arrays), sources)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        traced = torch.autograd.grad(compiled(*arrays), sources)
    for one, other in zip(traced, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        *("selective", "attention, bonus", "attention, heads", "delta rule, gated"),
        *("lstm", "gru", "closed form", "liquid", "synapses"),
    ],
)
def test_second_derivatives(name):
    case = CASES[name]
    arrays = [
        x.detach()[:, :3].clone().requires_grad_() if x is not None and x.ndim == 3 else x
        for x in leaves(name)
    ]
    sources = [x for x in arrays if x is not None and x.requires_grad]
    rest = [x for x in arrays if x is not None and not x.requires_grad]

    def call(*given):
        outs = getattr(ops, case.op)(
            *map(tensor.convert_to_tensor, (*given, *rest)), **case.options
        )
        return as_list(outs)[0].native

    with use_backend("torch"):
        assert torch.autograd.gradcheck(call, sources, fast_mode=True)
        assert torch.autograd.gradgradcheck(call, sources, fast_mode=True)


ON_TORCH = [name for backend_name, name in SERVED if backend_name == "torch"]


@pytest.mark.parametrize("name", ON_TORCH)
def test_dtypes_inside_autocast(threads, name):
    """They are those of the code without kernels."""
    arrays, dtypes = leaves(name, "float32"), []
    for off in (False, True):
        with (
            use_backend("torch"),
            torch.autocast("cpu", torch.bfloat16),
            _native.switched_off() if off else contextlib.nullcontext(),
        ):
            operands = [None if x is None else tensor.convert_to_tensor(x) for x in arrays]
            outs = as_list(getattr(ops, CASES[name].op)(*operands, **CASES[name].options))
            dtypes.append([x.native.dtype for x in outs])
    assert dtypes[0] == dtypes[1]


@pytest.mark.parametrize("name", ["lstm", "gru", "closed form", "liquid"])
def test_autocast(name):
    """The kernels never read bfloat16 as float32, and gradients keep their dtypes."""
    arrays = leaves(name, "float32")
    sources = [x for x in arrays if x is not None]
    case = CASES[name]

    def run(forward: bool, backward: bool) -> Any:
        with use_backend("torch"):
            operands = [None if x is None else tensor.convert_to_tensor(x) for x in arrays]
            with torch.autocast("cpu", torch.bfloat16, enabled=forward):
                out = as_list(getattr(ops, case.op)(*operands, **case.options))[0].native.float()
            with torch.autocast("cpu", torch.bfloat16, enabled=backward):
                return out, torch.autograd.grad(out.sum(), sources)

    want, grads = run(False, False)
    for forward, backward in ((True, False), (False, True)):
        out, found = run(forward, backward)
        torch.testing.assert_close(out, want, rtol=0.1, atol=0.1)
        assert all(g.dtype is torch.float32 and g.isfinite().all() for g in found)
        if not forward:
            for got, expect in zip(found, grads, strict=True):
                torch.testing.assert_close(got, expect, rtol=1e-4, atol=1e-4)


def outputs_of(name: str, arrays: list[Any]) -> list[Any]:
    """Return the results of an op for torch tensors."""
    case, operands = (
        CASES[name],
        [None if x is None else tensor.convert_to_tensor(x) for x in arrays],
    )
    with use_backend("torch"):
        return [x.native for x in as_list(getattr(ops, case.op)(*operands, **case.options))]


@pytest.mark.parametrize("name", ON_TORCH)
def test_gradients_with_the_negative_bit(threads, name):
    """Torch negates the imaginary part of a conjugate when it is read."""
    arrays = leaves(name)
    sources = [x for x in arrays if x is not None and x.requires_grad]
    found = []
    for change in (torch.Tensor.neg, torch._neg_view):
        outs = outputs_of(name, arrays)
        lines = [torch.linspace(-1, 1, x.numel(), dtype=x.dtype) for x in outs]
        given = [change(line.view(x.shape)) for line, x in zip(lines, outs, strict=True)]
        found.append(torch.autograd.grad(outs, sources, given, allow_unused=True))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["lstm", "gru", "closed form", "liquid"])
def test_cells_whose_states_are_changed_in_place(name):
    """The adjoints read the states, so results must be in other memory."""
    arrays = leaves(name)
    sources = [x for x in arrays if x is not None and x.requires_grad]
    losses = [(2 * x).square().sum() for x in outputs_of(name, arrays)]
    wanted = torch.autograd.grad(losses, sources)
    outs = [x.mul_(2).square().sum() for x in outputs_of(name, arrays)]
    torch.testing.assert_close(torch.autograd.grad(outs, sources), wanted)


@pytest.mark.parametrize("position", [4, 5])
def test_synapses_whose_indices_are_changed_before_the_backward_pass(threads, position):
    """The adjoint writes at the indices, so they must be those that were checked."""
    arrays = leaves("synapses")
    (out,) = outputs_of("synapses", arrays)
    arrays[position].fill_(1 << 40)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
def test_masks_of_numbers(backend_name, dtype):
    """Every number but 0 is true."""
    arrays = drawn(CASES["synaptic, masked"], 2, 9, "float64")
    with use_backend(backend_name):
        want = computed(CASES["synaptic, masked"], arrays)
        arrays[9] = np.where(arrays[9], 2 if dtype == "uint8" else 256, 0).astype(dtype)
        found = computed(CASES["synaptic, masked"], arrays)
    for got, expect in zip(chain(*found), chain(*want), strict=True):
        np.testing.assert_array_equal(got, expect)


def test_factors_and_states_that_are_numbers():
    """Reductions on NumPy return scalars, which are not arrays."""
    with use_backend("numpy"):
        b = tensor.array(np.random.default_rng(0).random((2, 9, 3)))
        number = ops.max(b)
        whole = number * ops.ones_like(b)
        want = computed(CASES["linear"], [x.numpy() for x in (whole, b, whole[:, 0])])[0]
        found = ops.linear_recurrence(number, b, number)
    for got, expect in zip(found, want, strict=True):
        np.testing.assert_allclose(got.numpy(), expect)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in jvp
def test_forward_mode():
    """A kernel without a rule for it is not used in a dual level."""
    arrays = [x.detach() for x in leaves("selective")]
    with use_backend("torch"), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(arrays[0], torch.ones_like(arrays[0]))
        y = ops.selective_scan(*map(tensor.convert_to_tensor, (dual, *arrays[1:]))).native
        tangent = torch.autograd.forward_ad.unpack_dual(y).tangent
    with use_backend("torch"):
        ones = [torch.ones_like(arrays[0]), *arrays[1:]]
        want = ops.selective_scan(*map(tensor.convert_to_tensor, ones)).native  # linear in u
    torch.testing.assert_close(tangent, want)


ARGUMENTS = {
    "closed form with timespans": "x h0 weight_hh weight bias timespans",
    "closed form with a backbone": "x h0 weight_hh weight bias",
    "liquid": "x v0 capacity slopes offsets weights",
    "lstm": "x h0 c0 weight_ih weight_hh bias_ih bias_hh",
    "gru": "x h0 weight_ih weight_hh bias_ih bias_hh",
    "synapses": "v slopes offsets weights sources destinations",
}


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_shapes_that_disagree(backend_name, name):
    """Errors name the op, an argument and the expected shape."""
    case = CASES[name]
    for position, argument in enumerate(ARGUMENTS[name].split()):
        arrays = drawn(case, 2, 3, "float32")
        if arrays[position] is None or argument == "v":  # of any number of neurons
            continue
        arrays[position] = np.concatenate([arrays[position]] * 2, -1)
        with use_backend(backend_name):
            operands = [None if x is None else tensor.array(x) for x in arrays]
            with pytest.raises(ValueError, match=rf"^{case.op}: \w+ has shape .*expected"):
                getattr(ops, case.op)(*operands, **case.options)


@pytest.mark.parametrize("backend_name", ["numpy", "torch"])
def test_synapses_out_of_range(threads, backend_name):
    threads(1)
    arrays = drawn(CASES["synapses"], 2, 3, "float32")
    with use_backend(backend_name):
        for position, index in ((4, 6), (4, -1), (5, 4), (5, -1)):
            changed = [x.copy() for x in arrays]
            changed[position][3] = index
            results = []
            for off in (False, True):
                with _native.switched_off() if off else contextlib.nullcontext():
                    try:
                        results.append(ops.synapses(*map(tensor.array, changed), 4).numpy())
                    except (IndexError, ValueError, RuntimeError) as error:
                        results.append(type(error))
            np.testing.assert_equal(*results)
