"""Causes of spikes: the decomposition of the voltage, against a naive simulator."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml.autodiff.causal import SpikeEvent
from ember_ml.nn import tensor
from ember_ml.nn.layers import Dense
from tests.unit.autodiff.spiking_runs import KINDS, Network, network, simulate

pytestmark = pytest.mark.usefixtures("backend")


@pytest.mark.parametrize("kind", KINDS)
def test_causes_sum_to_the_voltage(kind):
    net = network(**KINDS[kind])
    spikes, voltages = simulate(net)
    tape, recorded, _ = net.record()
    np.testing.assert_array_equal(recorded.numpy(), spikes)
    events = tape.causal.spikes()
    assert len(events) == spikes.sum() > 20
    for event in events:
        result = tape.causal.causes(event, top=None)
        voltage = voltages[event.batch, event.time, event.neuron]
        assert result.voltage == pytest.approx(voltage, abs=2e-5)
        assert result.total == pytest.approx(voltage, abs=2e-5)
        assert result.voltage > result.threshold
        assert result.initial == result.evicted == result.others == 0.0


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_contributions_are_those_of_the_formula(kind):
    net = network(**KINDS[kind])
    spikes, _ = simulate(net)
    tape, *_ = net.record()
    for event in tape.causal.spikes(batch=1):
        own = np.flatnonzero(spikes[1, : event.time, event.neuron])
        reset = own[-1] if len(own) and kind == "hard" else -1
        expected = {}
        for s, j in np.argwhere(spikes[1, : event.time]):
            weight, delay = net.weight[event.neuron, j], net.delays[event.neuron, j]
            if weight and reset < s + delay <= event.time:
                expected[s, j] = weight * net.beta ** (event.time - s - delay), s + delay
        result = tape.causal.causes(event, top=None)
        found = {(c.event.time, c.event.neuron): (c.contribution, c.arrival) for c in result}
        assert found.keys() == expected.keys()
        for key, (contribution, arrival) in expected.items():
            assert found[key] == (pytest.approx(contribution, rel=1e-6), arrival)
        sizes = [abs(cause.contribution) for cause in result]
        assert sizes == sorted(sizes, reverse=True)
        few = tape.causal.causes(event, top=2)
        assert few.spikes == result.spikes[:2]
        assert few.total == pytest.approx(result.total)


@pytest.mark.parametrize("kind", ["soft", "hard", "synaptic", "adaptive hard", "soft refractory"])
def test_a_state_is_continued(kind):
    """The second half of a run, started from the state of the first half."""
    net = network(**KINDS[kind])
    values, kinds = net.constants(), {"reset": net.reset, "refractory": net.refractory}
    drive = tensor.array(net.drive[:, :12].astype(np.float32))
    spikes, _, state = ops.spiking_scan(drive, **values, **kinds)
    delays = values["taps"].shape[0]
    _, voltages = simulate(net)
    net.state, net.history = state.numpy(), spikes.numpy()[:, -delays:]
    net.drive = net.drive[:, 12:]
    tape, *_ = net.record()
    results = [tape.causal.causes(event, top=None) for event in tape.causal.spikes()]
    assert any(abs(result.initial) > 0.01 for result in results)
    for result in results:
        event = result.event
        voltage = voltages[event.batch, event.time + 12, event.neuron]
        assert result.total == pytest.approx(voltage, abs=2e-5)


@pytest.mark.parametrize("kind", ["soft", "synaptic", "soft refractory", "adaptive hard"])
def test_masked_steps_hold_the_state(kind):
    net = network(steps=30, **KINDS[kind])
    net.mask = np.random.default_rng(1).random((2, 30)) < 0.7
    spikes, voltages = simulate(net)
    tape, recorded, _ = net.record()
    np.testing.assert_array_equal(recorded.numpy(), spikes)
    for event in tape.causal.spikes():
        total = tape.causal.causes(event).total
        assert total == pytest.approx(voltages[event.batch, event.time, event.neuron], abs=2e-5)


def test_weights_are_those_of_the_run():
    """Training after the run does not change the causes."""
    net = network()
    tape, *_ = net.record()
    event = tape.causal.spikes()[-1]
    before = tape.causal.causes(event, None)
    net.weight *= 0.0
    assert tape.causal.causes(event, None) == before


def two_layers(identity: bool = False, inputs: np.ndarray | None = None):
    rng = np.random.default_rng(3)
    spikes = (rng.random((2, 20, 5)) < 0.4).astype(np.float32)
    x = tensor.array(spikes if inputs is None else inputs)
    first, second = network(1, 6, 20), network(2, 6, 20)
    dense = [Dense(5, 6), Dense(6, 6)]
    for layer in dense:
        layer.weight.assign(
            tensor.array(rng.normal(0.2, 0.5, layer.weight.shape).astype("float32"))
        )
    with GradientTape(causal=True, persistent=True) as tape:
        inner = first.run(dense[0](x), "first")
        outer = second.run(inner if identity else dense[1](inner), "second")
        loss = ops.sum(outer * outer)
    return tape, x, dense, loss


def test_causes_through_dense_layers():
    tape, x, dense, _ = two_layers()
    context = tape.causal
    assert context.layers == ("first", "second")
    sources = {"first": x.numpy(), "second": None}
    for event in context.spikes()[::3]:
        result = context.causes(event, top=None)
        assert result.total == pytest.approx(result.voltage, abs=2e-5)
        layers = {cause.event.layer for cause in result}
        assert layers <= (
            {"first", "first.input"} if event.layer == "first" else {"first", "second"}
        )
        weight = dense[event.layer == "second"].weight.numpy()
        for cause in result:
            if cause.event.layer == event.layer:
                continue
            assert cause.arrival == cause.event.time
            if event.layer == "first":
                assert sources["first"][event.batch, cause.event.time, cause.event.neuron] == 1.0
            if not [
                s
                for s in context.spikes(event.layer, event.batch, event.neuron)
                if s.time < event.time
            ]:
                lag = event.time - cause.arrival
                expected = weight[event.neuron, cause.event.neuron] * 0.9**lag
                assert cause.contribution == pytest.approx(expected, rel=1e-5)
    tape, *_ = two_layers(identity=True)
    events = [
        event for event in tape.causal.spikes("second") if len(tape.causal.causes(event, None))
    ]
    named = [cause.event for e in events for cause in tape.causal.causes(e, None)]
    assert {event.layer for event in named} == {"first", "second"}
    for event in named:
        tape.causal.causes(event)  # each one is a recorded spike


def test_errors():
    net = network(**KINDS["hard"])
    tape, *_ = net.record()
    context = tape.causal
    event = context.spikes(batch=0)[3]
    with pytest.raises(LookupError, match=r"time 99 is out of range: 'net' has 24 steps"):
        context.causes(SpikeEvent("net", 0, 99, 0))
    with pytest.raises(LookupError, match="neuron 8 is out of range"):
        context.causes(SpikeEvent("net", 0, 0, 8))
    with pytest.raises(
        LookupError, match="no spiking run of 'other' was recorded; there are 'net'"
    ):
        context.causes(SpikeEvent("other", 0, 0, 0))
    times = [one.time for one in context.spikes(batch=0, neuron=event.neuron)]
    gap = next(t for t in range(24) if t not in times)
    with pytest.raises(LookupError, match=r"is not a spike; the nearest spikes .* at steps? \d+"):
        context.causes(SpikeEvent("net", 0, gap, event.neuron))
    with pytest.raises(TypeError, match="expected a SpikeEvent, not int"):
        context.causes(3)
    with GradientTape(causal=True) as empty:
        pass
    with pytest.raises(LookupError, match="no spiking run was recorded; call a spiking layer"):
        empty.causal.causes(event)
    with pytest.raises(LookupError, match="no spiking run was recorded"):
        empty.causal.spikes()


def test_a_neuron_that_never_spiked():
    tape, *_ = Network(np.zeros((1, 4, 2))).record()
    assert tape.causal.spikes() == []
    with pytest.raises(LookupError, match="this neuron never spiked in this row"):
        tape.causal.causes(SpikeEvent("net", 0, 2, 1))


def test_no_time_and_one_step():
    tape, *_ = Network(np.zeros((2, 0, 3))).record()
    assert tape.causal.spikes() == []
    tape, *_ = Network(np.full((1, 1, 2), 3.0), weight=np.ones((2, 2))).record()
    (first, _) = tape.causal.spikes()
    result = tape.causal.causes(first)
    assert (result.external, result.total, len(result)) == (3.0, 3.0, 0)
