"""C kernels of linear attention and the delta rule: states, layouts, strong decays, transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import GradientTape, _native, ops, use_backend
from ember_ml.backend import native_linear_attention as native
from ember_ml.backend.torch import linear_attention as on_torch
from ember_ml.nn import tensor
from ember_ml.ops.linear_attention import chunked_attention, chunked_delta_rule
from tests.robustness.scale import spread
from tests.unit.native.recurrence_cases import CASES
from tests.unit.native.test_recurrences import TOLERANCES, drawn, leaves, threads  # noqa: F401

NAMES = [name for name, case in CASES.items() if case.op.startswith("gated_")]
DECAYED = [name for name in NAMES if name not in ("attention", "delta rule")]
BACKENDS = ("numpy", "torch")
COMPILED = [
    (name, with_state)
    for with_state in (False, True)
    for name in ("attention", "attention, bonus", "delta rule, gated")
]


def operands_of(name: str, arrays: list[Any], state: Any) -> list[Any]:
    """Return query, key, value, decay, rate, bonus and state."""
    query, key, value, *rest = arrays
    if CASES[name].op == "gated_delta_rule":
        rate, decay = (*rest, None)[:2]
        return [query, key, value, decay, rate, None, state]
    decay, bonus = (*rest, None, None)[:2]
    return [query, key, value, decay, None, bonus, state]


def stateful(operands: list[Any]) -> Any:
    query, key, value, decay, rate, bonus, state = operands
    if rate is None:
        return chunked_attention(query, key, value, decay, bonus, state)
    return chunked_delta_rule(query, key, value, rate, decay, state)


def reference(name: str, arrays: list[Any], state: Any, cotangents: list[Any]) -> Any:
    """Return the results and the gradients of a loop in float64."""
    wide = [torch.tensor(x.astype(np.float64), requires_grad=True) for x in (*arrays, state)]
    outs = CASES[name].reference(*wide[:-1], state=wide[-1])
    grads = torch.autograd.grad(outs, wide, [torch.tensor(g) for g in cotangents])
    return [x.detach().numpy() for x in (*outs, *grads)]


def assert_near(found: Any, wanted: Any, tolerance: float) -> None:
    for got, want in zip(found, wanted, strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend_name", BACKENDS)
@pytest.mark.parametrize("is_on", [True, False])
def test_states(threads, name, backend_name, is_on):  # noqa: F811
    """From a state to the last one, with the gradients of both."""
    for length, count in ((1, 1), (16, 2), (35, 4)):
        threads(count)
        rng = np.random.default_rng(length)
        for dtype, tolerance in TOLERANCES.items():
            arrays = drawn(CASES[name], 3, length, dtype, seed=length)
            query, value = arrays[0], arrays[2]
            state = rng.standard_normal((3, 2, query.shape[3], value.shape[3])).astype(dtype)
            cotangents = [rng.standard_normal(x.shape) for x in (value, state)]
            wanted = reference(name, arrays, state, cotangents)
            with use_backend(backend_name), pytest.MonkeyPatch.context() as patch:
                if not is_on:
                    patch.setattr(_native, "library", None)
                given = [tensor.array(x) for x in (*arrays, state)]
                with GradientTape() as tape:
                    tape.watch(given)
                    outs = stateful(operands_of(name, given[:-1], given[-1]))
                into = [tensor.array(g.astype(dtype)) for g in cotangents]
                grads = tape.gradient(list(outs), given, into)
            assert_near([x.numpy() for x in (*outs, *grads)], wanted, tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend_name", BACKENDS)
def test_layout_of_layers(name, backend_name):
    """Layers split heads without a copy; results have the same layout."""
    arrays = drawn(CASES[name], 2, 20, "float64")
    inner = [x.swapaxes(1, 2).copy().swapaxes(1, 2) if x.ndim == 4 else x for x in arrays]
    found = []
    for each in (arrays, inner):
        with use_backend(backend_name):
            module = np.asarray if backend_name == "numpy" else torch.from_numpy
            given = [tensor.convert_to_tensor(module(x)) for x in each]
            with GradientTape() as tape:
                tape.watch(given)
                out = getattr(ops, CASES[name].op)(*given)
            grads = tape.gradient(out, given, out)
        found.append([x.numpy() for x in (out, *grads)])
    assert_near(found[1], found[0], 1e-12)
    y = found[1][0]
    assert y.strides[1] < y.strides[2]


@pytest.mark.parametrize("name", DECAYED)
@pytest.mark.parametrize("backend_name", BACKENDS)
def test_strong_decays(name, backend_name):
    """States that vanish at once or over a few steps, between slow ones."""
    rng = np.random.default_rng(1)
    at = 4 if "delta" in name else 3
    arrays = drawn(CASES[name], 2, 90, "float32")
    sizes = [0.0, 1e-3, 0.5, 8.0, 19.99, 20.01, 60.0, 1e4, np.inf]
    arrays[at] = -rng.choice(sizes, arrays[at].shape).astype(np.float32)
    state = np.zeros((2, 2, arrays[0].shape[3], arrays[2].shape[3]), np.float32)
    cotangents = [rng.standard_normal(arrays[2].shape), np.zeros(state.shape)]
    wanted = reference(name, arrays, state, cotangents)
    wanted = [wanted[0], *wanted[2:-1]]
    with use_backend(backend_name):
        given = [tensor.array(x) for x in arrays]
        with GradientTape() as tape:
            tape.watch(given)
            out = getattr(ops, CASES[name].op)(*given)
        grads = tape.gradient(out, given, tensor.array(cotangents[0].astype(np.float32)))
    found = [x.numpy() for x in (out, *grads)]
    assert all(np.isfinite(x).all() for x in found)
    assert_near(found, wanted, 1e-4)
    assert not found[1 + at][arrays[at] < -20].any()


@pytest.mark.parametrize("backend_name", BACKENDS)
def test_nan(backend_name):
    """NaN in a step reaches this step and later ones."""
    for at in range(5):
        arrays = drawn(CASES["attention, bonus"], 2, 6, "float32")
        arrays[at][(0, 1, 3, 2) if at < 4 else (1, 2)] = np.nan
        results = []
        for library in (_native.library, None):
            with use_backend(backend_name), pytest.MonkeyPatch.context() as patch:
                patch.setattr(_native, "library", library)
                results.append(ops.gated_linear_attention(*map(tensor.array, arrays)).numpy())
        assert np.isnan(results[0]).any()
        assert not np.isnan(results[0][:, 0]).any()
        assert not np.isnan(results[0][np.isfinite(results[1])]).any()


@pytest.mark.parametrize("name", ["attention", "delta rule"])
def test_large_states_use_matrix_products(name):
    keys = native.MOST_CORRECTED + 1
    narrow, wide = drawn(CASES[name], 1, 2, "float32"), drawn(CASES[name], 1, 2, "float32")
    for at in range(2):
        wide[at] = np.zeros((1, 2, 2, keys), np.float32)
    fits = lambda arrays: native.fits(operands_of(name, arrays, None)[:6])
    assert fits(narrow)
    assert not fits(wide)


def test_delta_rule_of_other_operands():
    """The kernel of the delta rule takes decays per head, and no bonus."""
    query, key, value, decay, rate, *_ = operands_of(
        "delta rule, gated", drawn(CASES["delta rule, gated"], 1, 2, "float32"), None
    )
    bonus = np.zeros((2, query.shape[3]), np.float32)
    assert native.fits((query, key, value, decay, rate, None))
    assert not native.fits((query, key, value, np.zeros_like(key), rate, None))
    assert not native.fits((query, key, value, decay, rate, bonus))


@pytest.mark.parametrize("backend_name", BACKENDS)
def test_few_heads_for_many_threads(threads, backend_name, monkeypatch):  # noqa: F811
    """The backend's own code uses the threads that would be idle."""
    names = []
    call = native.Frame.call
    monkeypatch.setattr(native.Frame, "call", lambda *args: (names.append(args[1]), call(*args)))
    arrays = drawn(CASES["attention"], 1, 40, "float32")
    for count, is_served in ((4, True), (5, False)):
        threads(count)
        names.clear()
        with use_backend(backend_name):
            ops.gated_linear_attention(*map(tensor.array, arrays))
        assert ("ember_linear_attention" in names) == is_served


def given_to(name: str, with_state: bool, dtype: str) -> list[Any]:
    """Return the operands of the custom op, with gradients."""
    arrays = leaves(name, dtype)
    shape = (2, 2, arrays[0].shape[3], arrays[2].shape[3])
    real = getattr(torch, dtype)
    state = torch.ones(shape, dtype=real, requires_grad=True) if with_state else None
    return operands_of(name, arrays, state)


@pytest.mark.parametrize("name", ["attention", "attention, bonus", "delta rule, gated"])
@pytest.mark.parametrize("with_state", [False, True])
def test_custom_op(name, with_state):
    torch.library.opcheck(on_torch._opaque, given_to(name, with_state, "float64"))


@pytest.mark.parametrize(("name", "with_state"), spread(COMPILED, 2))
def test_compiled(name, with_state):
    """As one op in a compiled graph; also if the kernels are switched off after compilation."""
    torch._dynamo.reset()
    operands = given_to(name, with_state, "float32")
    sources = [x for x in operands if x is not None]

    def loss(*given):
        wrapped = [None if x is None else tensor.convert_to_tensor(x) for x in given]
        y, last = stateful(wrapped)
        total = (y.native * y.native).sum()
        return total if last is None else total + last.native.sum()

    with use_backend("torch"):
        tensor.array(0.0)
        plain = torch.autograd.grad(loss(*operands), sources)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        traced = [torch.autograd.grad(compiled(*operands), sources)]
        with _native.switched_off():
            traced.append(torch.autograd.grad(compiled(*operands), sources))
    for grads in traced:
        for one, other in zip(grads, plain, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["attention", "attention, bonus", "delta rule, gated"])
def test_steps_without_the_library(name):
    """The custom op without the library, forward and backward."""
    operands = given_to(name, True, "float64")
    sources = [x for x in operands if x is not None]

    def results() -> list[torch.Tensor]:
        y, last, _ = on_torch._opaque(*operands)
        total = (y * y).sum() + last.sum()
        return [y, last, *torch.autograd.grad(total, sources)]

    wanted = results()
    with _native.switched_off():
        found = results()
    for got, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in jvp
@pytest.mark.parametrize("name", ["attention, bonus", "delta rule, gated"])
def test_transforms(name):
    """Forward mode and vmap use plain ops."""
    arrays = [x.detach() for x in leaves(name)]

    def call(value: torch.Tensor) -> torch.Tensor:
        given = [*arrays[:2], value, *arrays[3:]]
        return getattr(ops, CASES[name].op)(*map(tensor.convert_to_tensor, given)).native

    with use_backend("torch"):
        value = arrays[2]
        want = call(value)  # linear in the values
        _, tangent = torch.func.jvp(call, (value,), (value,))
        batched = torch.func.vmap(call)(torch.stack([value, 2 * value]))
    torch.testing.assert_close(tangent, want)
    torch.testing.assert_close(batched, torch.stack([want, 2 * want]))
