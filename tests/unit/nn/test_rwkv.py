"""Tests of the mixers of RWKV-5 and RWKV-6 against plain recurrences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from ember_ml import ops
from ember_ml.nn.layers.channel_mixing.rwkv import RWKV5ChannelMixer, RWKV6ChannelMixer
from ember_ml.nn.layers.sequence_mixing.rwkv import RWKV5TimeMixer, RWKV6TimeMixer
from ember_ml.nn.tensor import array
from tests.unit.nn.test_linear_attention import Params, compare, in_heads, merged, recurrence


def before(x: torch.Tensor) -> torch.Tensor:
    return F.pad(x, (0, 0, 1, 0))[:, :-1]


def finished(layer, p: Params, r, k, v, gate, g) -> torch.Tensor:
    """Compute the heads and normalize an eighth of their output, as RWKV does."""
    r, k, v, g = (in_heads(part, layer.num_heads) for part in (r, k, v, g))
    y = merged(recurrence(r, k, v, g, p["bonus"])) / 8
    y = F.group_norm(y.flatten(0, 1), layer.num_heads, p["norm.weight"], p["norm.bias"], 1e-5)
    return (y.view(gate.shape) * F.silu(gate)) @ p["out.weight"].T


def rwkv5(layer: RWKV5TimeMixer, p: Params, x: torch.Tensor) -> torch.Tensor:
    names = ("receptance", "key", "value", "gate")
    r, k, v, gate = (
        (x * (1 - p[f"{name}_share"]) + before(x) * p[f"{name}_share"]) @ p[f"{name}.weight"].T
        for name in names
    )
    g = (-p["decay"].exp()).expand_as(x)
    return finished(layer, p, r, k, v, gate, g)


def rwkv6(layer: RWKV6TimeMixer, p: Params, x: torch.Tensor) -> torch.Tensor:
    change = before(x) - x
    low = torch.tanh((x + change * p["share"]) @ p["shift_down.weight"].T).chunk(5, -1)
    r, k, v, gate, w = (
        x + change * F.linear(part, p[f"shift_up.{at}.weight"], p[f"shift_up.{at}.bias"])
        for at, part in enumerate(low)
    )
    rate = torch.tanh(w @ p["decay_down.weight"].T)
    g = -F.linear(rate, p["decay_up.weight"], p["decay_up.bias"]).exp()
    mapped = zip((r, k, v, gate), ("receptance", "key", "value", "gate"), strict=True)
    return finished(layer, p, *(part @ p[f"{name}.weight"].T for part, name in mapped), g)


def channel(layer: RWKV5ChannelMixer, p: Params, x: torch.Tensor) -> torch.Tensor:
    k = x + p["key_share"] * (before(x) - x)
    r = x + p["receptance_share"] * (before(x) - x)
    inner = F.relu(k @ p["key.weight"].T) ** 2
    return torch.sigmoid(r @ p["receptance.weight"].T) * (inner @ p["value.weight"].T)


CASES = [
    (lambda: RWKV5TimeMixer(12, 1), rwkv5),
    (lambda: RWKV5TimeMixer(12, 3), rwkv5),
    (lambda: RWKV6TimeMixer(12, 1), rwkv6),
    (lambda: RWKV6TimeMixer(12, 3, 4, 5), rwkv6),
    (lambda: RWKV5ChannelMixer(12), channel),
    (lambda: RWKV6ChannelMixer(12, 7), channel),
]


@pytest.mark.parametrize(("make", "reference"), CASES)
@pytest.mark.parametrize("length", [1, 63, 100])
def test_values_and_gradients(make, reference, length: int, backend: str) -> None:
    compare(make(), reference, length, 5e-5)


@pytest.mark.parametrize(
    "make",
    [lambda: RWKV5TimeMixer(8, 2), lambda: RWKV6TimeMixer(8, 2), lambda: RWKV5ChannelMixer(8)],
)
def test_left_padding_does_not_change_outputs(make, backend: str) -> None:
    layer = make()
    x = ops.random.normal((1, 40, 8), seed=1)
    mask = array(np.arange(40)[None] >= 5)
    assert ops.allclose(layer(x, mask)[:, 5:], layer(x[:, 5:]), atol=1e-4)


def test_parameter_counts() -> None:
    assert RWKV5ChannelMixer(128).num_parameters() == 147_712
    assert RWKV6ChannelMixer(128).num_parameters() == 147_712
    maps, vectors = 5 * 128 * 128, 128 * (4 + 2 + 2)  # shares, decay and bonus, norm
    assert RWKV5TimeMixer(128).num_parameters() == maps + vectors
    low = 128 * (5 * 32 + 5 * 32 + 64 + 64)
    assert RWKV6TimeMixer(128).num_parameters() == maps + low + 128 * (6 + 2 + 2)


@pytest.mark.parametrize("layer", [RWKV5TimeMixer, RWKV6TimeMixer])
def test_initial_values(layer) -> None:
    mixer = layer(128)
    decay = mixer.decay if layer is RWKV5TimeMixer else mixer.decay_up.bias
    expected = [-6 + 5 * (n / 127) ** 0.7 for n in range(128)]
    assert np.allclose(decay.numpy(), expected, atol=1e-6)
    bonus = [((n + 1) % 3 - 1) * 0.1 for n in range(128)]
    assert np.allclose(mixer.bonus.numpy().ravel(), bonus, atol=1e-6)
    assert mixer.bonus.shape == (8, 16)
    assert mixer.state_size == 8 * 16 * 16 + 128


def test_rwkv6_decay_depends_on_input(backend: str) -> None:
    layer = RWKV6TimeMixer(8, 2)
    x = ops.random.normal((2, 3, 8), seed=0)
    *_, still = layer.project(x, x)
    assert np.ptp(still.numpy(), axis=(0, 1)).max() == 0.0
    layer.decay_down.weight.assign(ops.random.normal((64, 8), seed=1))
    *_, moving = layer.project(x, x)
    assert np.ptp(moving.numpy(), axis=(0, 1)).min() > 0.0


def test_only_matrices_have_weight_decay() -> None:
    for layer in (RWKV5TimeMixer(8, 2), RWKV6TimeMixer(8, 2), RWKV5ChannelMixer(8)):
        for name, parameter in layer.named_parameters():
            assert parameter.decay == (name.endswith(".weight") and "norm" not in name), name


@pytest.mark.parametrize("layer", [RWKV5TimeMixer, RWKV6TimeMixer])
def test_errors_name_layer_and_sizes(layer) -> None:
    with pytest.raises(ValueError, match=rf"{layer.__name__}: features \(12\) must be divisible"):
        layer(12)
