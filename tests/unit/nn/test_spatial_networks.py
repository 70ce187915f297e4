"""Recurrent layers and models in space against simulators that loop over time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ember_ml import load, nn, ops, save
from ember_ml.nn.auxiliary_losses import reported_losses
from ember_ml.nn.layers import SpatialLIF, SpatialRNN
from ember_ml.nn.models import SeRNN, SeRSNN
from ember_ml.nn.space import SpatialEmbedding, WiringCost
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.backends import other_than
from tests.unit.nn.test_space import numeric_gradient

KINDS = [SpatialRNN, SpatialLIF]
MODELS = [SeRNN, SeRSNN]


def currents(batch: int, time: int, features: int, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(7)
    return (rng.random((batch, time, features)) * scale).astype(np.float32)


def test_the_rate_layer_is_a_recurrence_without_pruned_connections(backend: str) -> None:
    layer = SpatialRNN(3, 6)
    layer.prune(fraction=0.5)
    cell = layer.cells[0]
    w_in, w, b = (x.numpy().astype(np.float64) for x in (cell.weight_ih, cell.weight_hh, cell.mask))
    x, h, outputs = currents(2, 5, 3), np.zeros((2, 6)), []
    for at in range(5):
        h = np.maximum(x[:, at] @ w_in.T + h @ (w * b).T, 0.0)
        outputs.append(h)
    np.testing.assert_allclose(layer(array(x)).numpy(), np.stack(outputs, 1), rtol=1e-5, atol=1e-6)


def test_initial_weights_of_relu_neurons_keep_the_size_of_the_state(on_numpy: None) -> None:
    for activation, gain in (("relu", 2.0), (nn.activations.ReLU(), 2.0), ("tanh", 1.0)):
        w = SpatialRNN(4, 9, activation=activation).recurrent_weight().numpy()
        np.testing.assert_allclose(w @ w.T, gain * np.eye(9), atol=1e-5)


def simulate(
    x: np.ndarray, weight: np.ndarray, delays: np.ndarray, beta: float, threshold: float
) -> np.ndarray:
    """Return the spikes of neurons, synapse by synapse, in float64."""
    batch, time, units = x.shape
    spikes, v = np.zeros((batch, time, units)), np.zeros((batch, units))
    for t in range(time):
        v = beta * v + x[:, t]
        for i in range(units):
            for j in range(units):
                low = math.floor(delays[i, j])
                share = delays[i, j] - low
                for delay, part in ((low, 1.0 - share), (low + 1, share)):
                    if t >= delay:
                        v[:, i] += part * weight[i, j] * spikes[:, t - delay, j]
        spikes[:, t] = v > threshold
        v = v - threshold * spikes[:, t]
    return spikes


@pytest.mark.parametrize("speed", [0.6, 1.0, 50.0])
@pytest.mark.parametrize("learnable", [False, True])
def test_spikes_arrive_after_the_delay_of_their_distance(
    learnable: bool, speed: float, backend: str
) -> None:
    points = np.random.default_rng(3).standard_normal((6, 3)).astype(np.float32)
    embedding = SpatialEmbedding(6, positions=points, learnable=learnable)
    layer = SpatialLIF(6, embedding, speed=speed, dt=0.5, beta=0.7, threshold=0.8)
    layer.prune(fraction=0.25)
    delays = cdist(points.astype(np.float64), points) / (speed * 0.5)
    delays = np.maximum(1.0, delays if learnable else np.ceil(delays))
    x = currents(2, 20, 6, 0.6)
    weight = layer.recurrent_weight().numpy().astype(np.float64)
    assert (weight == 0).sum() == 9
    np.testing.assert_allclose(layer.synapse_delays().numpy(), delays, rtol=1e-5)
    expected = simulate(x.astype(np.float64), weight, delays, 0.7, 0.8)
    assert 0.05 < expected.mean() < 0.95
    np.testing.assert_array_equal(layer(array(x)).numpy(), expected)


def test_gradients_of_positions_through_interpolated_delays(backend: str) -> None:
    rng = np.random.default_rng(4)
    points, weight = rng.standard_normal((5, 2)) * 2.0, rng.standard_normal((5, 5))
    embedding = SpatialEmbedding(5, positions=points, learnable=True)
    layer = SpatialLIF(5, embedding, gamma=0.0)
    layer.weight.assign(weight)
    factors = rng.standard_normal((layer.max_delay, 5, 5))

    def taps(points: np.ndarray) -> float:
        delays = np.maximum(1.0, cdist(points, points))
        slots = np.arange(1, layer.max_delay + 1)[:, None, None]
        return float((np.maximum(0.0, 1.0 - np.abs(slots - delays)) * weight * factors).sum())

    given = array(factors.astype(np.float32))
    loss, grads = nn.value_and_grad(layer, lambda: (layer.taps() * given).sum())()
    assert float(loss) == pytest.approx(taps(points), rel=1e-4)
    np.testing.assert_allclose(
        grads["embedding.positions"].numpy(), numeric_gradient(taps, points), rtol=1e-3, atol=1e-3
    )
    x = array(currents(2, 12, 5))
    _, grads = nn.value_and_grad(layer, lambda: (layer(x)[:, -3:]).sum())()
    gradient = grads["embedding.positions"].numpy()
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0.0  # spikes depend on positions through delays alone


def test_learned_delays_stay_within_their_limit(backend: str) -> None:
    layer = SpatialLIF(4, SpatialEmbedding(4, learnable=True), speed=0.5)
    assert layer.max_delay == 4  # sqrt(2) / 0.5, rounded up, and one more
    layer.embedding.positions.assign(10.0 * layer.positions)
    assert float(ops.max(layer.synapse_delays())) == 4.0
    fixed = SpatialLIF(4, speed=0.5, max_delay=2)
    assert int(ops.max(fixed.synapse_delays())) == 2
    np.testing.assert_allclose(fixed.taps().numpy().sum(0), fixed.weight.numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_reported_in_training_mode_only(kind: Any, backend: str) -> None:
    layer = kind(8, gamma=0.2)
    x = array(currents(2, 9, 8))
    with reported_losses() as losses:
        layer(x)
    assert losses.names == ["wiring_cost"]
    weights = layer.recurrent_weight()
    expected = WiringCost(0.2)(ops.transpose(weights), SpatialEmbedding(8).distances())
    assert float(losses[0]) == pytest.approx(float(expected), rel=1e-6)
    assert float(layer.cost()) == pytest.approx(float(expected), rel=1e-6)
    for silent in (kind(8, gamma=0.0), kind(8).eval()):
        with reported_losses() as losses:
            silent(x)
        assert not losses


@pytest.mark.parametrize("model_cls", MODELS)
def test_pruned_connections_stay_zero_in_further_training(model_cls: Any, backend: str) -> None:
    ops.random.set_seed(0)
    model = model_cls(4, 3, 10)
    x, y = currents(16, 9, 4, 2.0), np.arange(16) % 3
    optimizer = {"type": "adamw", "learning_rate": 0.01, "weight_decay": 0.1}
    trainer = Trainer(model, optimizer=optimizer, seed=0, progress=False)
    trainer.fit((x, y), epochs=2, batch_size=8)  # the optimizer now has momentum
    report = model.prune(fraction=0.8)
    assert report == model.sparsity()
    assert (report.connections, report.possible) == (20, 100)
    before = model.recurrent_weight().numpy()
    trainer.fit((x, y), epochs=3, batch_size=8)
    after = model.recurrent_weight().numpy()
    np.testing.assert_array_equal(after == 0, before == 0)
    assert np.abs(after - before).max() > 1e-4  # the others learn
    again = model.prune(threshold=float(np.median(np.abs(after[after != 0]))))
    assert 8 <= again.connections <= 12
    assert model.prune(fraction=0.5) == again  # what is pruned stays pruned


@pytest.mark.parametrize("model_cls", MODELS)
def test_a_trainer_reports_the_cost(model_cls: Any, backend: str) -> None:
    ops.random.set_seed(0)
    model = model_cls(4, 3, 12, gamma=0.5)
    x, y = currents(32, 9, 4, 2.0), np.arange(32) % 3
    trainer = Trainer(model, optimizer="adam", learning_rate=0.01, seed=0, progress=False)
    first = float(model.cost())
    history = trainer.fit((x, y), epochs=4, batch_size=16)
    assert trainer.loss_terms == ["wiring_cost"]
    assert history.steps[0]["wiring_cost"] == pytest.approx(first, rel=1e-5)
    costs = history.column("wiring_cost")
    assert len(costs) == 4
    assert costs[-1] < costs[0]
    assert costs[0] == pytest.approx(np.mean([s["wiring_cost"] for s in history.steps[:2]]))
    assert all(0.0 < step["wiring_cost"] < step["loss"] for step in history.steps)
    plain = trainer.evaluate((x, y))["loss"]  # without the cost
    assert plain < history.epochs[-1]["loss"]


@pytest.mark.parametrize("model_cls", MODELS)
def test_a_checkpoint_has_positions_and_pruned_connections(
    model_cls: Any, backend: str, tmp_path: Path
) -> None:
    embedding = SpatialEmbedding(10, "random", learnable=True, scale=3.0)
    model = model_cls(4, 3, 10, embedding=embedding)
    model.prune(fraction=0.6)
    model.positions.assign(model.positions + 0.25)
    x = currents(2, 9, 4, 2.0)
    save(model, tmp_path / "model")
    twin = load(tmp_path / "model", backend=other_than(backend))
    assert twin.sparsity() == model.sparsity()
    np.testing.assert_array_equal(twin.positions.numpy(), model.positions.numpy())
    ours, theirs = model.eval()(x).numpy(), twin.eval()(x).numpy()
    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)
    assert twin.config.to_dict() == model.config.to_dict()


@pytest.mark.parametrize("model_cls", MODELS)
def test_learnable_positions_move(model_cls: Any, backend: str) -> None:
    model = model_cls(4, 3, 8, embedding={"type": "spatial", "units": 8, "learnable": True})
    before = model.positions.numpy().copy()
    x, y = currents(16, 9, 4, 2.0), np.arange(16) % 3
    Trainer(model, learning_rate=0.01, progress=False).fit((x, y), epochs=2, batch_size=8)
    after = model.positions.numpy()
    assert np.isfinite(after).all()
    assert np.abs(after - before).max() > 1e-3


def test_layers_are_named_in_patterns(backend: str) -> None:
    model = nn.models.SequenceClassifier(
        "spatial_rnn swiglu spatial_lif[gamma=0.01]", 3, in_features=4, hidden_size=8
    )
    with reported_losses() as losses:
        assert model(currents(2, 9, 4)).shape == (2, 3)
    assert losses.names == ["wiring_cost", "wiring_cost"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SpatialRNN(4, gamma=-1.0), "gamma"),
        (lambda: SpatialLIF(4, speed=0.0), "speed"),
        (lambda: SpatialLIF(4, dt=-1.0), "dt"),
        (lambda: SpatialLIF(4, threshold=0.0), "threshold"),
        (
            lambda: SeRNN(4, 3, 10, embedding=SpatialEmbedding(8)),
            "positions of 8 neurons, but the layer has 10",
        ),
        (lambda: SpatialLIF(4, embedding="grid"), "embedding"),
        (lambda: SpatialLIF(4).set_delays(1), "delays follow from positions and speed"),
        (
            lambda: SpatialLIF(4, speed=0.01)(ops.ones((1, 20, 4))),
            r"smallest delay between two neurons \(100 steps\) is longer than the sequence \(20",
        ),
        (lambda: SeRNN(4, 3, 5)(ops.ones((2, 0, 4))), "needs at least one position"),
        (lambda: SeRSNN(4, 3, 5)(ops.ones((2, 6, 3))), "4 features"),
        (lambda: SeRNN(4, 3, 5)(ops.ones((6, 4))), r"expected \(batch, time, in_features\)"),
        (lambda: SeRSNN(4, 3, 5)(ops.full((2, 6, 4), math.nan)), "NaN"),
        (lambda: SeRNN(4, 3, 5)(None), "got NoneType"),
        (lambda: SeRSNN(4, 3, 5)(ops.ones((2, 6, 4)), state=()), "result of `initial_state`"),
        (lambda: SpatialLIF(4, max_delay=10**9), r"max_delay \(1000000000 steps\) is too large"),
        (lambda: SpatialLIF(40, speed=1e-7), "larger speed or time step"),
        (lambda: SeRNN(4, 3, 5).prune(), "either fraction or threshold"),
    ],
)
def test_errors(call: Any, message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_short_sequences_compile(backend: str, trace: Any) -> None:
    for embedding in (None, SpatialEmbedding(30, learnable=True)):
        layer = SpatialLIF(30, embedding).eval()
        x = array(currents(1, 2, 30, 2.0))
        np.testing.assert_array_equal(trace(lambda x: layer(x))(x).numpy(), layer(x).numpy())  # noqa: B023


def test_one_neuron_and_short_sequences(backend: str) -> None:
    for time in (1, 2):
        assert SpatialLIF(1)(ops.ones((1, time, 1))).shape == (1, time, 1)
        assert SpatialLIF(30)(ops.ones((1, time, 30))).shape == (1, time, 30)
        assert SeRSNN(2, 3, 30, pooling="none")(ops.ones((1, time, 2))).shape == (1, time, 3)
    assert float(SpatialRNN(1).cost()) == 0.0
