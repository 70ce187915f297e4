"""Tests of linear attention, GLA, DeltaNet and retention against plain recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import nn, ops
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.layers.sequence_mixing.delta_net import DeltaNet, GatedDeltaNet
from ember_ml.nn.layers.sequence_mixing.gated_linear_attention import (
    GatedLinearAttention,
    MultiHeadGatedLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.linear_attention import (
    LinearAttention,
    MultiHeadLinearAttention,
)
from ember_ml.nn.layers.sequence_mixing.retention import Retention
from ember_ml.nn.tensor import array

Params = dict[str, torch.Tensor]
LENGTHS = [1, 63, 100]


def recurrence(q, k, v, g=None, u=None, rate=None) -> torch.Tensor:
    """Compute the recurrence step by step in float64, (batch, heads, time, features)."""
    state = torch.zeros(*q.shape[:2], q.shape[-1], v.shape[-1], dtype=torch.float64)
    outputs = []
    for t in range(q.shape[2]):
        before, key, value = state, k[:, :, t], v[:, :, t]
        if g is not None:
            state = g[:, :, t].exp()[..., None] * state
        if rate is not None:
            held = torch.einsum("bhk,bhkv->bhv", key, state)
            value = rate[:, :, t] * (value - held)
        entry = key[..., None] * value[..., None, :]
        state = state + entry
        read = state if u is None else before + u[..., None] * entry
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, :, t], read))
    return torch.stack(outputs, 2)


def in_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merged(y: torch.Tensor) -> torch.Tensor:
    return y.transpose(1, 2).flatten(2)


def rms(y: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-5) -> torch.Tensor:
    return F.rms_norm(y, y.shape[-1:], weight, eps)


def near(ours, theirs: torch.Tensor, tolerance: float) -> bool:
    """Return whether the error is small relative to the largest value."""
    expected = theirs.detach().numpy()
    return bool(np.abs(ours.numpy() - expected).max() <= tolerance * max(1, np.abs(expected).max()))


def gradient_of(x: torch.Tensor) -> torch.Tensor:
    """Return the gradient; zeros if the result does not depend on x."""
    return torch.zeros_like(x) if x.grad is None else x.grad


def compare(layer: SequenceMixer, reference: Callable, length: int, tolerance=2e-5) -> None:
    """Compare outputs and gradients of a layer with random parameters to its reference."""
    for at, parameter in enumerate(layer.parameters()):
        noise = ops.random.normal(parameter.shape, 0.0, 0.3, seed=at)
        parameter.assign(parameter + noise)
    params = {
        name: torch.tensor(parameter.numpy().astype(np.float64), requires_grad=True)
        for name, parameter in layer.named_parameters()
    }
    x = ops.random.normal((2, length, layer.features), seed=77)
    expected = reference(layer, params, torch.tensor(x.numpy().astype(np.float64)))
    weights = ops.random.normal(expected.shape, seed=78)
    (expected * torch.tensor(weights.numpy())).sum().backward()
    assert near(layer(x), expected, tolerance)
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()
    for name, grad in grads.items():
        assert near(grad, gradient_of(params[name]), 10 * tolerance), name


def linear_attention(layer: LinearAttention, p: Params, x: torch.Tensor) -> torch.Tensor:
    q, k, v = (in_heads(part, layer.num_heads) for part in (x @ p["qkv.weight"].T).chunk(3, -1))

    def phi(y: torch.Tensor, name: str) -> torch.Tensor:
        first, second = F.linear(y, p[f"{name}.weight"], p[f"{name}.bias"]).chunk(2, -1)
        return first * second

    q, k = phi(q, "query_map"), phi(k, "key_map")
    below = recurrence(q, k, torch.ones_like(v[..., :1]))
    return merged(recurrence(q, k, v) / (below + layer.eps)) @ p["out.weight"].T


def gated_linear_attention(layer: GatedLinearAttention, p: Params, x: torch.Tensor):
    q, k, v, gate = (x @ p["qkvg.weight"].T).chunk(4, -1)
    g = F.linear(x @ p["decay_down.weight"].T, p["decay_up.weight"], p["decay_up.bias"])
    g = F.logsigmoid(g) / layer.gate_divisor
    q, k, v, g = (in_heads(part, layer.num_heads) for part in (q, k, v, g))
    y = recurrence(q / math.sqrt(q.shape[-1]), k, v, g)
    return (merged(rms(y, p["norm.weight"])) * F.silu(gate)) @ p["out.weight"].T


def delta_net(layer: DeltaNet, p: Params, x: torch.Tensor) -> torch.Tensor:
    parts = F.silu(x @ p["qkv.weight"].T).chunk(3, -1)
    q, k, v = (in_heads(part, layer.num_heads) for part in parts)
    q, k = F.normalize(q, dim=-1) / math.sqrt(q.shape[-1]), F.normalize(k, dim=-1)
    rate = in_heads(torch.sigmoid(x @ p["rate.weight"].T), layer.num_heads)
    if "decay.weight" not in p:
        y = recurrence(q, k, v, rate=rate)
        return merged(rms(y, p["norm.weight"])) @ p["out.weight"].T
    speed = F.softplus(F.linear(x, p["decay.weight"], p["decay.bias"]))
    g = in_heads(-p["log_speed"].exp() * speed, layer.num_heads)
    y = merged(rms(recurrence(q, k, v, g, rate=rate), p["norm.weight"]))
    return (y * F.silu(x @ p["gate.weight"].T)) @ p["out.weight"].T


def retention(layer: Retention, p: Params, x: torch.Tensor) -> torch.Tensor:
    keys, values = layer.features, layer.value_features
    q, k, v, gate = (x @ p["qkvg.weight"].T).split([keys, keys, values, values], -1)
    q, k, v = (in_heads(part, layer.num_heads) for part in (q, k, v))
    pairs = q.shape[-1] // 2
    speeds = 1e4 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    turns = torch.polar(
        torch.ones(1, dtype=torch.float64), torch.arange(x.shape[1])[:, None] * speeds
    )

    def turned(y: torch.Tensor) -> torch.Tensor:
        z = torch.complex(y[..., :pairs], y[..., pairs:]) * turns
        return torch.cat([z.real, z.imag], -1)

    gamma = 1 - 2.0 ** (-5 - torch.arange(layer.num_heads, dtype=torch.float64))
    g = gamma.log()[None, :, None, None].expand(*q.shape[:3], 1)
    y = recurrence(turned(q), turned(k) / math.sqrt(q.shape[-1]), v, g)
    return (merged(rms(y, None)) * F.silu(gate)) @ p["out.weight"].T


CASES = [
    (lambda: GatedLinearAttention(12), gated_linear_attention),
    (lambda: GatedLinearAttention(12, 3, 4, 0.5), gated_linear_attention),
    (lambda: DeltaNet(12, 2), delta_net),
    (lambda: GatedDeltaNet(12, 3), delta_net),
    (lambda: Retention(12, 3), retention),
    (lambda: Retention(12, 2, value_features=6), retention),
]


@pytest.mark.parametrize(("make", "reference"), CASES)
@pytest.mark.parametrize("length", LENGTHS)
def test_values_and_gradients(make, reference, length: int, backend: str) -> None:
    compare(make(), reference, length)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("length", LENGTHS)
def test_linear_attention(heads: int, length: int, backend: str) -> None:
    ops.random.set_seed(0)  # some weights bring the denominators close to zero
    layer = LinearAttention(12, heads, eps=1e-6)
    # Biases that keep the denominators away from zero.
    for part in (layer.query_map, layer.key_map):
        part.bias.assign(ops.ones_like(part.bias) * 3.0)
    compare(layer, linear_attention, length, 1e-4)


@pytest.mark.parametrize("kind", ["none", "head", "feature", "bonus"])
@pytest.mark.parametrize(("length", "size"), [(1, 4), (7, 4), (100, 4), (150, 64)])
def test_chunked_attention(kind: str, length: int, size: int, backend: str) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 3, length, n)) for n in (size, size, 5))
    g = -rng.exponential(0.3, (2, 3, length, 1 if kind == "head" else size))
    u = rng.normal(size=(3, size))
    given = [q, k, v, *([] if kind == "none" else [g]), *([u] if kind == "bonus" else [])]
    wide = [torch.tensor(part, requires_grad=True) for part in given]
    weights = rng.normal(size=v.shape)
    expected = recurrence(*wide)
    (expected * torch.tensor(weights)).sum().backward()
    ours = [nn.Parameter(part.astype(np.float32)) for part in given]
    assert near(_chunked.attend(*ours)[0], expected, 1e-5)
    model = nn.Module()
    model.parts = ours
    loss = nn.value_and_grad(
        model, lambda: (_chunked.attend(*ours)[0] * array(weights.astype(np.float32))).sum()
    )
    for grad, part in zip(loss()[1].values(), wide, strict=True):
        assert near(grad, gradient_of(part), 5e-5)


@pytest.mark.parametrize("features", [1, 4])
@pytest.mark.parametrize("bonus", [False, True])
def test_strong_decays_are_accurate(features: int, bonus: bool, backend: str) -> None:
    """States that vanish, at once or over a few steps, between slowly decaying ones."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(1, 2, 90, 4)) for _ in range(3))
    g = -rng.choice([1e-3, 0.5, 8.0, 60.0, 1e4], (1, 2, 90, features), p=[0.5, 0.2, 0.1, 0.1, 0.1])
    u = rng.normal(size=(2, 4)) if bonus else None
    given = [part for part in (q, k, v, g, u) if part is not None]
    wide = [torch.tensor(part, requires_grad=True) for part in given]
    expected = recurrence(*wide)
    expected.square().sum().backward()
    model = nn.Module()
    model.parts = ours = [nn.Parameter(part.astype(np.float32)) for part in given]
    assert near(_chunked.attend(*ours)[0], expected, 2e-4)
    _, grads = nn.value_and_grad(model, lambda: (_chunked.attend(*ours)[0] ** 2).sum())()
    for at in range(3):
        assert near(grads[f"parts.{at}"], wide[at].grad, 1e-3)
    assert np.isfinite(grads["parts.3"].numpy()).all()


MIXERS = [
    lambda: LinearAttention(8, 2),
    lambda: GatedLinearAttention(8, 2),
    lambda: DeltaNet(8, 2),
    lambda: GatedDeltaNet(8, 2),
    lambda: Retention(8, 2),
]


@pytest.mark.parametrize("make", MIXERS)
def test_left_padding_does_not_change_outputs(make, backend: str) -> None:
    ops.random.set_seed(3)
    layer = make()
    x = ops.random.normal((1, 40, 8), seed=1)
    mask = array(np.arange(40)[None] >= 5)
    assert ops.allclose(layer(x, mask)[:, 5:], layer(x[:, 5:]), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("layer", "count"),
    [
        (LinearAttention, 131_584),
        (MultiHeadLinearAttention, 65_824),
        (GatedLinearAttention, 86_272),
        (MultiHeadGatedLinearAttention, 86_160),
    ],
)
def test_parameter_counts_of_mad(layer, count: int) -> None:
    assert layer(128).num_parameters() == count


@pytest.mark.parametrize("make", MIXERS)
def test_state_size(make) -> None:
    layer = make()
    state = layer.initial_state(3)
    state = state[0] if isinstance(layer, Retention) else state
    assert state.size == 3 * layer.state_size


def test_norms_decays_and_biases_have_no_weight_decay() -> None:
    layer = GatedDeltaNet(8, 2)
    spared = {name for name, parameter in layer.named_parameters() if not parameter.decay}
    assert spared == {"norm.weight", "decay.bias", "log_speed"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearAttention(8, 3), r"LinearAttention: features \(8\) must be divisible"),
        (
            lambda: MultiHeadGatedLinearAttention(9),
            r"MultiHeadGatedLinearAttention: features \(9\)",
        ),
        (lambda: DeltaNet(8, 3), r"DeltaNet: features \(8\) must be divisible by num_heads \(3\)"),
        (lambda: GatedDeltaNet(8, 3), r"GatedDeltaNet: features \(8\)"),
        (
            lambda: Retention(6, 2),
            r"Retention: features \(6\) must be divisible by 2 \* num_heads \(4\)",
        ),
        (lambda: GatedLinearAttention(8, gate_rank=0), "gate_rank"),
    ],
)
def test_errors_name_layer_and_sizes(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
