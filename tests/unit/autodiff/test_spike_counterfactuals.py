"""Reruns without a spike, against a naive simulator; derivatives of a loss, against autograd."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml.autodiff import SpikeEvent
from ember_ml.nn import tensor
from tests.unit.autodiff.spiking_runs import KINDS, network, simulate
from tests.unit.autodiff.test_spike_causes import two_layers

pytestmark = pytest.mark.usefixtures("backend")
RERUN = [kind for kind in KINDS if kind != "feedforward"]


@pytest.mark.parametrize("kind", RERUN)
def test_a_rerun_without_a_spike(kind):
    net = network(batch=1, **KINDS[kind])
    spikes, voltages = simulate(net)
    tape, *_ = net.record()
    context = tape.causal
    events = context.spikes()
    linear = 0
    for removed in events[1::6]:
        changed, other = simulate(net, (0, removed.time, removed.neuron))
        for event in [one for one in events if one.time > removed.time][::8]:
            result = context.but_for(removed, event)
            at = 0, event.time, event.neuron
            assert result.fired == bool(changed[at])
            assert result.voltage == pytest.approx(other[at], abs=3e-5)
            assert result.change == pytest.approx(other[at] - voltages[at], abs=3e-5)
            differs = {
                (int(t), int(n), bool(changed[0, t, n]))
                for t, n in np.argwhere(changed[0, : event.time + 1] != spikes[0, : event.time + 1])
            }
            assert differs == {
                (one.time, one.neuron, fired)
                for fired, listed in ((True, result.appeared), (False, result.vanished))
                for one in listed
            }
            if result.linear:
                linear += 1
                assert result.change == pytest.approx(result.predicted, abs=1e-6)
    assert linear > 2


def test_where_it_is_not_linear():
    """Without the first spike, neuron 1 is silent, so neuron 2 loses an input that it relayed."""
    from tests.unit.autodiff.spiking_runs import Network

    weight = np.zeros((3, 3))
    weight[1, 0], weight[2, 1], weight[2, 0] = 1.5, 1.5, 0.25
    drive = np.zeros((1, 4, 3))
    drive[0, 0, 0] = 2.0
    tape, *_ = Network(drive, weight, reset="hard", beta=0.5).record()
    first, middle, last = tape.causal.spikes()
    result = tape.causal.but_for(first, last)
    assert (result.fired, result.linear) == (False, False)
    assert result.vanished == (middle, last)
    assert result.predicted == pytest.approx(-0.125)
    assert result.change == pytest.approx(-1.625)
    direct = tape.causal.but_for(middle, last)
    assert direct.linear
    assert direct.change == pytest.approx(direct.predicted) == pytest.approx(-1.5)
    with pytest.raises(ValueError, match="both events are"):
        tape.causal.but_for(last, last)


def test_a_rerun_of_two_layers():
    tape, *_ = two_layers()
    context = tape.causal
    results = [
        context.but_for(removed, event)
        for removed in context.spikes("first", batch=1)[::3]
        for event in context.spikes("second", batch=1)
        if removed.time <= event.time <= removed.time + 1
    ]
    assert any(not result.fired for result in results)
    for result in results:
        if result.linear:
            assert result.change == pytest.approx(result.predicted, abs=1e-6)
    assert any(result.linear and abs(result.change) > 0.01 for result in results)
    later = context.spikes("second", batch=1)[0]
    backwards = context.but_for(later, context.spikes("first", batch=1)[-1])
    assert (backwards.fired, backwards.change) == (True, 0.0)


def test_without_an_input():
    """Against a recording of the same layers with the input set to 0."""
    tape, x, *_ = two_layers()
    time, channel = (int(at) for at in np.argwhere(x.numpy()[1])[9])
    removed = SpikeEvent("first.input", 1, time, channel)
    changed = x.numpy().copy()
    changed[1, time, channel] = 0.0
    other, *_ = two_layers(inputs=changed)
    for layer in ("first", "second"):
        want = set(other.causal.spikes(layer, batch=1))
        for event in tape.causal.spikes(layer, batch=1)[::5]:
            result = tape.causal.but_for(removed, event)
            assert result.fired == (event in want)
            if result.fired:
                voltage = other.causal.causes(event).voltage
                assert result.voltage == pytest.approx(voltage, abs=3e-5)
    empty = next((int(t), int(n)) for t, n in np.argwhere(x.numpy()[1] == 0))
    with pytest.raises(LookupError, match="is no input: its value is 0"):
        tape.causal.but_for(SpikeEvent("first.input", 1, *empty), event)


def test_a_later_spike_changes_nothing():
    tape, *_ = network(batch=1).record()
    events = tape.causal.spikes()
    result = tape.causal.but_for(events[-1], events[3])
    assert (result.fired, result.change, result.linear) == (True, 0.0, True)


def loss_of(spikes):
    weights = tensor.array(
        np.linspace(-1.0, 1.0, spikes.size).reshape(spikes.shape).astype("float32")
    )
    return ops.sum(weights * spikes) ** 2 * 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_a_loss(kind):
    """dL/dz by autograd: an extra input of each synapse and output, which is zero."""
    net = network(neurons=5, steps=10, batch=1, seed=3, **KINDS[kind])
    tape, recorded, loss = net.record(loss_of, persistent=True)
    influence = tape.causal.influence_on(loss)
    assert tape.causal.influence_on(loss) is influence
    expected = stepped_gradient(net)
    events = tape.causal.spikes()
    assert len(events) > 3
    for event in events:
        want = expected[0, event.time, event.neuron]
        assert influence[event] == pytest.approx(want, rel=2e-4, abs=2e-5)
    ranked = influence.top(3)
    assert len(ranked) == 3
    assert abs(ranked[0][1]) == pytest.approx(max(abs(influence[e]) for e in events))
    effect = events[-1]
    for cause in tape.causal.causes(effect, None):
        want = abs(influence.voltage(effect) * cause.contribution)
        assert influence.edge(cause.event, effect) == pytest.approx(want)
    assert recorded.shape == (1, 10, 5)


def stepped_gradient(net):
    """Return dL/dz by a tape over ops of single steps, where each spike is a tensor of its own."""
    _, steps, neurons = net.drive.shape
    drive = net.drive.astype(np.float32)
    probes = [tensor.array(np.zeros(neurons, np.float32)) for _ in range(steps)]
    with GradientTape() as tape:
        tape.watch(probes)
        v = current = level = tensor.array(np.zeros(neurons, np.float32))
        rest = np.zeros(neurons)
        past = []
        for t in range(steps):
            x = tensor.array(drive[0, t])
            for s, z in enumerate(past):
                if net.weight is not None:
                    taps = np.where(net.delays == t - s, net.weight, 0.0).astype(np.float32)
                    x = x + ops.matmul(tensor.array(taps), z)
            if net.alpha is not None:
                current = x = net.alpha * current + x
            theta = net.threshold + net.strength * level
            active = tensor.array(rest <= 0)
            v = ops.where(active, net.beta * v + x, v)
            u = v - theta
            smooth = ops.arctan(np.pi * u) / np.pi
            hard = ops.where(u > 0, ops.ones_like(u), ops.zeros_like(u))
            z = ops.stop_gradient(hard) + (smooth - ops.stop_gradient(smooth))
            z = ops.where(active, z, ops.zeros_like(z)) + probes[t]
            fired = ops.stop_gradient(z)
            if net.reset == "soft":
                v = v - theta * fired
            elif net.reset == "hard":
                v = v * (1.0 - fired)
            if net.rho is not None:
                level = net.rho * level + z
            rest = np.maximum(rest - 1, 0) + net.refractory * fired.numpy()
            past.append(z)
        loss = loss_of(ops.reshape(ops.stack(past), (1, steps, neurons)))
    grads = tape.gradient(loss, probes, unconnected_gradients="zero")
    return np.stack([g.numpy() for g in grads])[None]


def test_the_loss_of_two_layers():
    """The derivative of a spike of the first layer goes through the second one."""
    tape, _, dense, loss = two_layers()
    influence = tape.causal.influence_on(loss)
    drive = tape.causal.spike_store.run("second").drive
    gradient = tape.gradient(loss, drive).numpy()
    weight = dense[1].weight.numpy()
    first = tape.causal.spike_store.run("first")
    inner = tape.gradient(loss, first.drive).numpy()
    for event in tape.causal.spikes("first")[::3]:
        want = gradient[event.batch, event.time] @ weight[:, event.neuron]
        for delay, tap in enumerate(first.taps, 1):
            if event.time + delay < 20:
                want += inner[event.batch, event.time + delay] @ tap[:, event.neuron]
        assert influence[event] == pytest.approx(want, rel=1e-4, abs=1e-5)


def test_errors_of_the_loss():
    net = network()
    tape, _, loss = net.record(loss_of)
    assert tape.causal.influence_on(loss) is tape.causal.influence_on(loss)
    with pytest.raises(ValueError, match="has not recorded the loss"):
        tape.causal.influence_on(tensor.array(1.0))
    context = tape.causal
    del tape
    with pytest.raises(LookupError, match="the tape that recorded the spikes no longer exists"):
        context.influence_on(tensor.array(1.0))
    with GradientTape(causal=True) as empty:
        pass
    with pytest.raises(LookupError, match="no spiking run was recorded"):
        empty.causal.influence_on(loss)
