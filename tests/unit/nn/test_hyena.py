"""Tests of Hyena, multi-head Hyena and Hyena experts against their definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops
from ember_ml.nn import tensor
from ember_ml.nn.layers.sequence_mixing import multi_head_hyena as module
from ember_ml.nn.layers.sequence_mixing._filters import HyenaFilter
from ember_ml.nn.layers.sequence_mixing.hyena import Hyena
from ember_ml.nn.layers.sequence_mixing.hyena_experts import HyenaExperts
from ember_ml.nn.layers.sequence_mixing.multi_head_hyena import MultiHeadHyena

COUNTS = {Hyena: 124_348, MultiHeadHyena: 30_862, HyenaExperts: 57_464}


def weights(layer):
    return {name: np.float64(value.numpy()) for name, value in layer.named_parameters()}


def filters(w, channels, max_length, length):
    """Compute the filters by their equation, (channels, length)."""
    t = np.linspace(0, 1, max_length)[:length, None]
    z = w["filter.positions"][:length]
    for at in range(3):
        z = z @ w[f"filter.layers.{at}.weight"].T + w[f"filter.layers.{at}.bias"]
        z = np.sin(w["filter.frequency"] * z)
    d = np.linspace(np.log(0.01) / 1.5, np.log(0.01) / 0.3, channels)
    return (z @ w["filter.output.weight"].T * np.exp(-t * np.abs(d))).T


def projected(w, x, groups):
    """Compute the three filtered sequences tap by tap, (batch, channels, time)."""
    u = np.tile(x @ w["in_proj.weight"].T + w["in_proj.bias"], (1, 1, groups))
    taps = w["short.weight"]
    y = np.zeros_like(u) + w["short.bias"]
    for back in range(taps.shape[1]):
        y[:, back:] += taps[:, -1 - back] * u[:, : u.shape[1] - back]
    return np.split(y.swapaxes(1, 2), 3, axis=1)


def convolved(x, h, skip):
    y = skip[:, None] * x
    for t in range(x.shape[-1]):
        for s in range(t + 1):
            if t - s < h.shape[-1]:
                y[..., t] += h[:, t - s] * x[..., s]
    return y


def hyena(w, x, layer):
    q, k, v = projected(w, x, layer.groups)
    h = filters(w, len(w["skip"]), layer.max_length, x.shape[1])
    y = q * convolved(k * v, h, w["skip"])
    return y.swapaxes(1, 2) @ w["out_proj.weight"].T + w["out_proj.bias"]


def multi_head(w, x, layer):
    """Convolve the outer product of each pair of channels of a group."""
    q, v, k = (
        u.reshape(len(x), -1, layer.num_heads, x.shape[1]) for u in projected(w, x, layer.groups)
    )
    h = filters(w, len(w["skip"]), layer.max_length, x.shape[1])
    outer = np.einsum("bfit,bfjt->bijft", k, v)
    y = np.einsum("bijft,bfit->bfjt", convolved(outer, h, w["skip"]), q)
    y = y.reshape(len(x), -1, x.shape[1]).swapaxes(1, 2)
    return y @ w["out_proj.weight"].T + w["out_proj.bias"]


def experts(w, x, layer):
    q, k, v = projected(w, x, 1)
    h = filters(w, len(w["skip"]), layer.max_length, x.shape[1])
    y = (q * convolved(k * v, h, w["skip"])).swapaxes(1, 2)
    scores = x @ w["router.weight"].T + w["router.bias"]
    out = np.zeros((*x.shape[:2], len(w["out_proj.weight"][0])))
    for place in np.ndindex(*x.shape[:2]):
        best = np.argsort(scores[place])[-layer.top_k :]
        share = np.exp(scores[place][best] - scores[place].max())
        channels = y[place].reshape(-1, layer.num_experts)[:, best]
        out[place] = channels @ (share / share.sum())
    return out @ w["out_proj.weight"].T + w["out_proj.bias"]


LAYERS = {
    "hyena": (lambda: Hyena(6, inner_factor=4, max_length=12), hyena),
    "one group": (lambda: Hyena(6, inner_factor=1, projection_groups=1, max_length=30), hyena),
    "heads": (lambda: MultiHeadHyena(8, num_heads=4, max_length=12), multi_head),
    "experts": (
        lambda: HyenaExperts(6, num_experts=4, expert_features=3, max_length=12),
        experts,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_values(backend, name):
    make, reference = LAYERS[name]
    ops.random.set_seed(3)
    layer = make()
    for length in (1, 7, 17):
        x = np.random.default_rng(length).standard_normal((2, length, layer.features))
        actual = layer(tensor.array(x.astype(np.float32))).numpy()
        np.testing.assert_allclose(
            actual, reference(weights(layer), x, layer), rtol=1e-3, atol=1e-4
        )


@pytest.mark.parametrize("name", LAYERS)
def test_step_by_step(backend, name):
    layer = LAYERS[name][0]()
    x = tensor.array(np.random.default_rng(0).standard_normal((2, 15, layer.features), np.float32))
    y, _ = layer.unroll(x)
    np.testing.assert_allclose(y.numpy(), layer(x).numpy(), rtol=1e-3, atol=1e-4)


def test_multi_head_by_pairs_equals_fft(backend, monkeypatch):
    layer = MultiHeadHyena(8, num_heads=4, max_length=40)
    x = tensor.array(np.random.default_rng(0).standard_normal((2, 33, 8), np.float32))
    by_pairs = layer(x).numpy()
    monkeypatch.setattr(module, "ATTENTION_LENGTH", 0)
    np.testing.assert_allclose(layer(x).numpy(), by_pairs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", COUNTS)
def test_parameter_counts(backend, kind):
    layer = kind(128, max_length=128)
    assert sum(p.size for p in layer.parameters()) == COUNTS[kind]


@pytest.mark.parametrize("name", LAYERS)
def test_padding_does_not_change_outputs(backend, name):
    layer = LAYERS[name][0]()
    x = np.random.default_rng(0).standard_normal((2, 9, layer.features)).astype(np.float32)
    mask = np.arange(9) >= 3
    padded = layer(tensor.array(x), tensor.array(np.stack([mask] * 2)))
    alone = layer(tensor.array(x[:, 3:]))
    np.testing.assert_allclose(padded.numpy()[:, 3:], alone.numpy(), rtol=1e-3, atol=1e-4)


def test_router_chooses_top_k_experts(backend):
    layer = HyenaExperts(6, num_experts=4, expert_features=3, top_k=2, max_length=12)
    weights = layer.route(ops.ones((2, 5, 6))).numpy()
    assert ((weights > 0).sum(-1) == 2).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-5)
    same = layer.route(ops.zeros((1, 6))).numpy()  # equal scores: still two experts
    assert (same > 0).sum() == 2


def test_filters_decay(backend):
    taps = np.abs(HyenaFilter(3, 4, 200)(200).numpy())
    assert taps.shape == (3, 200)
    assert taps[2, -50:].max() < 1e-4


BAD = {
    "groups": (lambda: Hyena(5, inner_factor=1, projection_groups=4), r"projection_groups \(4\)"),
    "heads": (lambda: MultiHeadHyena(10, num_heads=4), r"num_heads \(4\)"),
    "experts": (lambda: HyenaExperts(8, num_experts=2, top_k=3), r"top_k \(3\)"),
    "length": (lambda: Hyena(8, max_length=0), "max_length"),
    "features": (
        lambda: Hyena(8)(ops.ones((1, 2, 9))),
        r"Hyena: expected an input of shape \(batch, time, 8\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend, name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()
