"""Encoders and decoders of spikes against loops over single values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.errors import ShapeError
from ember_ml.configs import Config, ConfigError
from ember_ml.nn.features import DeltaEncoder, LatencyEncoder, RateEncoder
from ember_ml.nn.layers import LatencyDecoder, MaxDecoder, RateDecoder
from ember_ml.nn.tensor import array

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.2, 1.2, (3, 5)).astype(np.float32)
TRAINS = (RNG.random((3, 7, 4)) < 0.25).astype(np.float32)
TRAINS[0, :, 0] = 0.0
MASK = np.arange(7) < np.array([7, 4, 1])[:, None]
SERIES = RNG.normal(0.0, 0.3, (2, 30, 3)).cumsum(axis=1).astype(np.float32)


def test_rates_are_probabilities(backend: str) -> None:
    spikes = RateEncoder(4000)(array(X), seed=0).numpy()
    assert spikes.shape == (3, 4000, 5)
    assert set(np.unique(spikes)) == {0.0, 1.0}
    np.testing.assert_allclose(spikes.mean(1), np.clip(X, 0, 1), atol=0.03)
    again = RateEncoder(4000)(array(X), seed=0).numpy()
    np.testing.assert_array_equal(spikes, again)
    loud = RateEncoder(50, gain=100.0)(array(np.full((1, 2), 0.5, np.float32))).numpy()
    assert loud.all()


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_latencies(steps: int, backend: str) -> None:
    spikes = LatencyEncoder(steps, threshold=0.1)(array(X)).numpy()
    for row, at in np.ndindex(X.shape):
        want = np.zeros(steps)
        if X[row, at] >= 0.1:
            want[round((1 - min(float(X[row, at]), 1.0)) * (steps - 1))] = 1
        np.testing.assert_array_equal(spikes[row, :, at], want)


@pytest.mark.parametrize("off_spikes", [True, False])
def test_deltas(off_spikes: bool, backend: str) -> None:
    spikes = DeltaEncoder(0.25, off_spikes)(array(SERIES)).numpy()
    for row, at in np.ndindex(2, 3):
        last = np.float32(0.0)
        for step, value in enumerate(SERIES[row, :, at]):
            change = value - last
            up, down = change >= 0.25, change <= (-0.25 if off_spikes else 0.0)
            assert spikes[row, step, at] == (1.0 if up else -1.0 if down and off_spikes else 0.0)
            last = value if up or down else last
    assert (spikes == -1).any() == off_spikes


def test_encoders_take_other_shapes_and_types(backend: str) -> None:
    assert LatencyEncoder(4)(np.array([1, 0])).numpy().tolist()[0] == [1.0, 0.0]
    assert LatencyEncoder(4)(ops.ones((0, 3))).shape == (0, 4, 3)
    assert DeltaEncoder()(ops.ones((2, 0, 3))).shape == (2, 0, 3)
    with pytest.raises(ShapeError, match=r"DeltaEncoder: .*\(3, 5\)"):
        DeltaEncoder()(array(X))
    with pytest.raises(ShapeError, match=r"RateEncoder: .*scalar"):
        RateEncoder(3)(ops.ones(()))
    for wrong in (lambda: RateEncoder(0), lambda: DeltaEncoder(0.0), lambda: LatencyEncoder(3, -1)):
        with pytest.raises(ConfigError):
            wrong()
    encoder = LatencyEncoder(4, 0.2)
    assert Config.from_yaml(encoder.config.to_yaml()).create().threshold == 0.2


def reference(name: str, x: Any, mask: Any) -> Any:
    out = np.zeros((len(x), x.shape[2]))
    for row, at in np.ndindex(out.shape):
        train = x[row, mask[row], at]
        hits = np.flatnonzero(train)
        out[row, at] = {
            "rate": train.mean(),
            "count": train.sum(),
            "latency": (len(train) - hits[0]) / len(train) if len(hits) else 0.0,
            "max": train.max(),
        }[name]
    return out


DECODERS = {
    "rate": RateDecoder,
    "count": lambda: RateDecoder(count=True),
    "latency": LatencyDecoder,
    "max": MaxDecoder,
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name: str, backend: str) -> None:
    decoder = DECODERS[name]()
    x = TRAINS if name != "max" else -np.abs(SERIES[:, :7].repeat(2, 0)[:3])
    whole = np.ones(x.shape[:2], bool)
    np.testing.assert_allclose(decoder(array(x)).numpy(), reference(name, x, whole), rtol=1e-6)
    masked = decoder(array(x), array(MASK)).numpy()
    np.testing.assert_allclose(masked, reference(name, x, MASK), rtol=1e-6)
    with pytest.raises(ShapeError, match=r"\(3, 0, 4\)"):
        decoder(ops.ones((3, 0, 4)))
    with pytest.raises(ShapeError, match="mask"):
        decoder(array(x), array(MASK[:, :3]))


def test_latencies_have_gradients_up_to_the_first_spike(backend: str) -> None:
    x = array(np.array([[[0.0], [0.0], [1.0], [0.0], [1.0]]], np.float32))
    with GradientTape() as tape:
        tape.watch(x)
        y = LatencyDecoder()(x)
    # a spike saves the steps until the next one; after the first spike it saves nothing
    np.testing.assert_allclose(tape.gradient(y, x).numpy()[0, :, 0], [0.4, 0.2, 0.4, 0.0, 0.0])
