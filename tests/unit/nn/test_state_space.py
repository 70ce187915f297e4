"""Tests of Mamba and Mamba-2 against transformers, S4D and LRU against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from transformers import Mamba2Config, MambaConfig
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

from ember_ml import _native, ops
from ember_ml.backend.torch.ops import selective_scan as kernels
from ember_ml.nn import tensor, value_and_grad
from ember_ml.nn.layers.sequence_mixing.lru import LRU
from ember_ml.nn.layers.sequence_mixing.mamba import Mamba
from ember_ml.nn.layers.sequence_mixing.mamba2 import Mamba2
from ember_ml.nn.layers.sequence_mixing.rg_lru import RGLRU
from ember_ml.nn.layers.sequence_mixing.s4d import S4D

FEATURES = 12
NAMES = {
    "conv.weight": "conv1d.weight",
    "conv.bias": "conv1d.bias",
    "dt_weight": "dt_proj.weight",
}


def mamba():
    config = MambaConfig(
        hidden_size=FEATURES, state_size=4, time_step_rank=3, num_hidden_layers=1, use_bias=True
    )
    names = NAMES | {"dt_bias": "dt_proj.bias"}
    return MambaMixer(config, 0), Mamba(FEATURES, dt_rank=3, bias=True), names


def mamba2(groups=1):
    config = Mamba2Config(
        hidden_size=FEATURES,
        state_size=5,
        head_dim=4,
        num_heads=6,
        n_groups=groups,
        chunk_size=8,
        num_hidden_layers=1,
    )
    layer = Mamba2(FEATURES, d_state=5, head_dim=4, num_groups=groups, chunk_size=8)
    return Mamba2Mixer(config, 0), layer, NAMES


PAIRS = {"mamba": mamba, "mamba2": mamba2, "mamba2 in groups": lambda: mamba2(2)}


def pair(name):
    """Return a layer of transformers, ours with the same weights, and the parameter names."""
    torch.manual_seed(0)
    theirs, ours, names = PAIRS[name]()
    for value in theirs.parameters():
        value.data += 0.1 * torch.randn_like(value)
    given = dict(theirs.named_parameters())
    for key, value in ours.named_parameters():
        value.assign(given[names.get(key, key)].detach().numpy().reshape(value.shape))
    return theirs, ours, names


@pytest.mark.parametrize("length", [1, 8, 21])
@pytest.mark.parametrize("name", PAIRS)
def test_against_transformers(backend, name, length):
    theirs, ours, names = pair(name)
    rng = np.random.default_rng(length)
    x, g = (rng.standard_normal((2, length, FEATURES)).astype(np.float32) for _ in range(2))
    wanted = theirs(torch.tensor(x))
    given = dict(theirs.named_parameters())
    slopes = torch.autograd.grad(wanted, list(given.values()), torch.tensor(g), allow_unused=True)
    slopes = dict(zip(given, slopes, strict=True))
    inputs, cotangent = tensor.array(x), tensor.array(g)
    np.testing.assert_allclose(ours(inputs).numpy(), wanted.detach().numpy(), rtol=1e-3, atol=2e-4)
    _, actual = value_and_grad(ours, lambda x: ops.sum(ours(x) * cotangent))(inputs)
    for key, value in actual.items():
        want = slopes[names.get(key, key)].numpy().reshape(value.shape)
        np.testing.assert_allclose(value.numpy(), want, rtol=2e-3, atol=5e-4, err_msg=key)


@pytest.mark.parametrize("name", PAIRS)
def test_padding_before_a_sequence(backend, name):
    _, ours, _ = pair(name)
    x = np.random.default_rng(0).standard_normal((2, 9, FEATURES)).astype(np.float32)
    mask = np.stack([np.arange(9) >= 3] * 2)
    padded = ours(tensor.array(x), tensor.array(mask)).numpy()[:, 3:]
    np.testing.assert_allclose(padded, ours(tensor.array(x[:, 3:])).numpy(), rtol=1e-3, atol=1e-4)


def test_padding_within_a_sequence(backend):
    _, ours, _ = pair("mamba")
    x = np.random.default_rng(0).standard_normal((1, 9, FEATURES)).astype(np.float32)
    x[:, 3:6] = 1e3
    mask = tensor.array((np.arange(9)[None] < 3) | (np.arange(9)[None] > 5))
    late = ours(tensor.array(x), mask).numpy()[:, 6:]
    x[:, 3:6] = -7.0
    np.testing.assert_allclose(ours(tensor.array(x), mask).numpy()[:, 6:], late, rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_step_by_step(backend, name):
    _, ours, _ = pair(name)
    x = tensor.array(np.random.default_rng(0).standard_normal((2, 11, FEATURES), np.float32))
    y, state = ours.unroll(x)
    np.testing.assert_allclose(y.numpy(), ours(x).numpy(), rtol=1e-3, atol=1e-4)
    assert sum(part.size for part in state) == 2 * ours.state_size


def test_strong_decay_stays_finite(backend):
    layer = Mamba2(8, head_dim=4, chunk_size=64)
    layer.dt_bias.assign(ops.full(layer.dt_bias.shape, 80.0))
    x = tensor.array(np.random.default_rng(0).standard_normal((1, 64, 8), np.float32))
    value, grads = value_and_grad(layer, lambda x: ops.sum(layer(x)))(x)
    assert np.isfinite(value.item())
    assert all(np.isfinite(g.numpy()).all() for g in grads.values())


def test_mamba_initial_values(backend):
    layer = Mamba(128)
    assert sum(p.size for p in layer.parameters()) == 107_264
    np.testing.assert_allclose(np.exp(layer.A_log.numpy()), [[1, 2, 3, 4]] * 256, rtol=1e-6)
    steps = np.log1p(np.exp(np.float64(layer.dt_bias.numpy())))
    assert 0.00099 < steps.min() < 0.002
    assert 0.05 < steps.max() < 0.101
    assert not any(p.decay for p in (layer.A_log, layer.D, layer.dt_bias, layer.conv.bias))


def s4d_reference(layer, x):
    """Compute the states by the matrix exponential in float64."""
    w = {name: np.float64(value.numpy()) for name, value in layer.named_parameters()}
    a = -np.exp(w["log_rate"]) + 1j * w["turn"]
    c = w["read"][0] + 1j * w["read"][1]
    y = np.zeros(x.shape)
    for channel in range(x.shape[-1]):
        step = np.exp(w["log_dt"][channel, 0])
        rates, ones = np.diag(a[channel]), np.ones((a.shape[1], 1))
        block = np.block([[rates, ones], [np.zeros((1, a.shape[1] + 1))]])
        block = scipy.linalg.expm(block * step)
        factor, entry = block[:-1, :-1], block[:-1, -1]
        h = np.zeros((len(x), a.shape[1]), complex)
        for t in range(x.shape[1]):
            h = h @ factor.T + x[:, t, channel, None] * entry
            y[:, t, channel] = 2 * (h @ c[channel]).real
    y = torch.tensor(y + w["skip"] * x)
    return torch.nn.functional.gelu(y).numpy() @ w["out_proj.weight"].T + w["out_proj.bias"]


def lru_reference(layer, x):
    w = {name: np.float64(value.numpy()) for name, value in layer.named_parameters()}
    factor = np.exp(-np.exp(w["nu"]) + 1j * np.exp(w["theta"]))
    write, read = (w[name][0] + 1j * w[name][1] for name in ("write", "read"))
    h = np.zeros((len(x), len(factor)), complex)
    y = []
    for t in range(x.shape[1]):
        h = factor * h + np.exp(w["gamma_log"]) * (x[:, t] @ write.T)
        y.append((h @ read.T).real + w["skip"] * x[:, t])
    return np.stack(y, 1)


def rg_lru_reference(layer, x):
    w = {name: np.float64(value.numpy()) for name, value in layer.named_parameters()}
    u, gate = np.split(x @ w["in_proj.weight"].T + w["in_proj.bias"], 2, axis=-1)
    taps = w["conv.weight"]
    h, y, (_, time, width) = np.zeros((len(x), u.shape[-1])), [], u.shape
    blocks = (len(x), layer.num_heads, width // layer.num_heads)
    rate = 8 * np.log1p(np.exp(w["decay"]))
    for t in range(time):
        late = [t - taps.shape[1] + 1 + k for k in range(taps.shape[1])]
        v = sum(taps[:, k] * u[:, s] for k, s in enumerate(late) if s >= 0) + w["conv.bias"]
        r, i = (
            np.einsum("bhi,hij->bhj", v.reshape(blocks), w[f"{name}_gate"]) + w[f"{name}_bias"]
            for name in ("decay", "input")
        )
        r, i = 1 / (1 + np.exp(-r)), 1 / (1 + np.exp(-i))
        a = np.exp(-rate * r.reshape(v.shape))
        h = a * h + (np.sqrt(1 - a**2) if t else 1.0) * i.reshape(v.shape) * v
        phi = torch.nn.functional.gelu(torch.tensor(gate[:, t]), approximate="tanh").numpy()
        y.append((h * phi) @ w["out_proj.weight"].T + w["out_proj.bias"])
    return np.stack(y, 1)


OTHERS = {
    "s4d": (lambda: S4D(5, d_state=8, dt_min=0.05, dt_max=0.5), s4d_reference),
    "lru": (lambda: LRU(5, d_state=7), lru_reference),
    "rg_lru": (lambda: RGLRU(5, 8, num_heads=2, d_conv=3), rg_lru_reference),
}


@pytest.mark.parametrize("length", [1, 16, 37])
@pytest.mark.parametrize("name", OTHERS)
def test_against_the_definition(backend, name, length):
    make, reference = OTHERS[name]
    ops.random.set_seed(1)
    layer = make()
    x = np.random.default_rng(0).standard_normal((2, length, 5))
    actual = layer(tensor.array(x.astype(np.float32)))
    np.testing.assert_allclose(actual.numpy(), reference(layer, x), rtol=1e-3, atol=1e-4)
    steps, _ = layer.unroll(tensor.array(x.astype(np.float32)))
    np.testing.assert_allclose(steps.numpy(), actual.numpy(), rtol=1e-3, atol=1e-4)


def test_lru_initial_eigenvalues(backend):
    layer = LRU(64, d_state=200, r_min=0.5, r_max=0.9, max_phase=0.3)
    size = np.exp(-np.exp(layer.nu.numpy()))
    assert 0.499 < size.min() < 0.6
    assert 0.8 < size.max() < 0.901
    assert np.exp(layer.theta.numpy()).max() < 0.301
    np.testing.assert_allclose(np.exp(layer.gamma_log.numpy()), np.sqrt(1 - size**2), rtol=1e-4)


@pytest.mark.parametrize("skip", [True, False])
def test_blocked_scan_on_torch(monkeypatch, skip):
    for name, value in (("_STEP", 0), ("_BLOCK", 40), ("CHUNK", 4)):
        monkeypatch.setattr(kernels, name, value)
    shapes = (3, 10, 3), (3, 10, 3), (3, 2), (3, 10, 2), (3, 10, 2), (3,)
    operands = [torch.randn(shape, dtype=torch.float64) for shape in shapes[: 5 + skip]]
    operands[1] = operands[1].abs()
    operands[2] = -operands[2].abs()
    operands = [x.requires_grad_() for x in operands]
    full = operands if skip else [*operands, None]
    scan = kernels.selective_scan
    with _native.switched_off():
        torch.testing.assert_close(scan(*operands), kernels._plain(*full, None)[0])
        assert torch.autograd.gradcheck(scan, operands, fast_mode=True, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(scan, operands, fast_mode=True)


def test_scan_in_half_precision(backend):
    x = ops.ones((1, 4, 2), dtype="float16")
    y = ops.selective_scan(
        x, x, ops.zeros((2, 3), dtype="float16"), *[ops.ones((1, 4, 3), dtype="float16")] * 2
    )
    assert y.dtype == "float16"
    assert y.tolist() == [[[3.0] * 2, [6.0] * 2, [9.0] * 2, [12.0] * 2]]


BAD = {
    "steps": (
        lambda: Mamba(8, dt_min=0.2, dt_max=0.1),
        r"dt_min \(0.2\) must not exceed dt_max \(0.1\)",
    ),
    "negative": (lambda: Mamba(8, dt_min=-1.0), "dt_min"),
    "heads": (lambda: Mamba2(8, head_dim=5), r"head_dim \* num_groups \(5\)"),
    "odd": (lambda: S4D(8, d_state=3), "d_state"),
    "ring": (
        lambda: LRU(8, r_min=0.9, r_max=0.5),
        r"r_min \(0.9\) must be less than r_max \(0.5\)",
    ),
    "features": (
        lambda: Mamba(8)(ops.ones((2, 3, 7))),
        r"Mamba: expected an input of shape \(batch, time, 8\)",
    ),
    "scan": (
        lambda: ops.selective_scan(*[ops.ones((2, 3, 4))] * 2, *[ops.ones((4, 2))] * 3),
        "selective_scan: got shapes",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend, name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()
