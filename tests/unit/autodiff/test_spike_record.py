"""The record of spikes: its size, its bound, its layers and its plots."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from ember_ml import GradientTape, nn, ops
from ember_ml._core import recording
from ember_ml.autodiff.causal import SpikeEvent
from ember_ml.autodiff.causal.spikes import report_spikes
from ember_ml.autodiff.causal.spikes.report import synapse_taps
from ember_ml.nn import layers, tensor
from tests.backends import has_dtype
from tests.unit.autodiff.spiking_runs import KINDS, Network, network, simulate

mpl.use("agg")
pytestmark = pytest.mark.usefixtures("backend")


def test_bytes_of_a_spike():
    """16 bytes of columns and a bit per step and neuron; here 4 % of the bits are spikes."""
    rng = np.random.default_rng(0)
    drive = 2.0 * (rng.random((8, 100, 128)) < 0.04)
    tape, spikes, _ = Network(drive, beta=0.5).record()
    run = tape.causal.spike_store.run()
    count = int(spikes.numpy().sum())
    assert len(run) == count > 3000
    columns = (run.places, run.voltages, run.previous)
    assert sum(column.nbytes for column in columns) == 16 * count
    assert run.nbytes == 16 * count + 8 * 100 * 128 // 8
    assert run.nbytes / count < 21


def test_previous_spikes():
    net = network()
    spikes, voltages = simulate(net)
    tape, *_ = net.record()
    run = tape.causal.spike_store.run()
    for at, event in enumerate(map(run.event, run.places)):
        before = np.flatnonzero(spikes[event.batch, : event.time, event.neuron])
        assert run.previous[at] == (before[-1] if len(before) else -1)
        assert run.voltages[at] == pytest.approx(
            voltages[event.batch, event.time, event.neuron], abs=2e-5
        )


@pytest.mark.parametrize("kind", ["soft", "hard", "adaptive hard"])
@pytest.mark.parametrize("bound", [1, 7, 30])
def test_a_ring_of_spikes(kind, bound):
    net = network(neurons=11, **KINDS[kind])
    whole, *_ = net.record()
    tape, *_ = net.record(max_events=bound)
    context = tape.causal
    events = whole.causal.spikes()
    assert context.spikes() == events[-bound:]
    assert len(context.spike_store) == bound
    run = context.spike_store.run()
    assert run.nbytes <= 20 * bound + 2 * 2 * (24 - events[-bound - 1].time)
    with pytest.raises(LookupError, match=r"was dropped, if it was a spike: max_events .* oldest"):
        context.causes(events[0])
    for event in context.spikes():
        full, part = whole.causal.causes(event, None), context.causes(event, None)
        known = set(context.spikes())
        assert part.total == pytest.approx(part.voltage, abs=2e-5)
        assert {cause for cause in full if cause.event in known} == set(part)
        lost = [cause for cause in full if cause.event not in known]
        if not lost and full.resets == 0.0:
            assert part.evicted == pytest.approx(0.0, abs=2e-5)
        if lost and full.resets == 0.0:
            want = sum(cause.contribution for cause in lost)
            assert part.evicted == pytest.approx(want, abs=2e-5)
    row = context.spikes(batch=1)
    if len(row) > 1:
        with pytest.raises(
            LookupError, match=r"but_for needs .* of 'net', .* before step \d+ were"
        ):
            context.but_for(row[0], row[-1])


def test_a_run_that_was_dropped():
    net = network(steps=10)
    with GradientTape(causal=True, max_events=3) as tape:
        for name in ("first", "second"):
            net.run(tensor.array(net.drive.astype(np.float32)), name)
    assert tape.causal.layers == ("second",)
    assert {event.layer for event in tape.causal.spikes()} == {"second"}
    with pytest.raises(LookupError, match="the run of 'first' was dropped, or did not happen"):
        tape.causal.causes(SpikeEvent("first", 0, 9, 0))
    assert len(tape.causal.ancestors(tape.causal.spikes()[-1])) >= 1


def test_runs_are_bounded():
    """Silent runs too, and layers whose inputs were dropped still have causes."""
    layer, quiet = layers.LIF(3), ops.zeros((1, 2, 3))
    with GradientTape(causal=True, max_events=4) as tape:
        for _ in range(20):
            layer(quiet)
    assert len(tape.causal.layers) == 4
    first, second = layers.LIF(3), layers.LIF(3, threshold=0.4)
    with GradientTape(causal=True, max_events=5) as tape:
        second(first(2.0 * ops.ones((1, 6, 3))))
    assert tape.causal.layers == ("LIF_1",)
    event = tape.causal.spikes()[-1]
    result = tape.causal.causes(event)
    assert {cause.event.layer for cause in result} == {"LIF"}
    assert result.total == pytest.approx(result.voltage, abs=1e-5)
    assert {one.event.layer for one in tape.causal.ancestors(event)} == {"LIF_1", "LIF"}
    assert {one.layer for one in tape.causal.light_cone(event)} == {"LIF_1"}
    assert len(tape.causal.to_networkx()) > 5
    with pytest.raises(LookupError, match="the run of 'LIF' was dropped"):
        tape.causal.causes(result.spikes[0].event)


def test_nothing_is_recorded_without_a_causal_tape():
    net = network()
    drive = tensor.array(net.drive.astype(np.float32))
    with GradientTape() as tape:
        net.run(drive)
    assert tape.causal is None
    assert not recording.OPEN
    with GradientTape(causal=True) as tape:
        tape.causal.stop_recording()
        net.run(drive)
        tape.causal.start_recording()
    assert tape.causal.layers == ()
    with GradientTape(causal=True) as tape:
        net.run(drive)
        tape.reset()
    assert tape.causal.layers == ()
    with GradientTape(causal=True) as outer, GradientTape(causal=True) as inner:
        net.run(drive)
    assert outer.causal.spikes() == inner.causal.spikes() != []


MODELS = {
    "lif": lambda: layers.LIF(6, reset="hard"),
    "synaptic": lambda: layers.Synaptic(6),
    "alif": lambda: layers.ALIF(6),
    "recurrent": lambda: layers.RecurrentLIF(6, max_delay=4, refractory=1),
    "learned delays": lambda: layers.RecurrentLIF(6, max_delay=4, learn_delays=True),
}


@pytest.mark.parametrize("kind", MODELS)
def test_layers(kind):
    ops.random.set_seed(0)
    model = nn.Sequential(layers.Dense(4, 6), MODELS[kind](), layers.Dense(6, 6), layers.LIF(6))
    x = tensor.array((np.random.default_rng(0).random((2, 20, 4)) < 0.5).astype(np.float32))
    for dense in (model[0], model[2]):
        dense.weight.assign(ops.abs(dense.weight) * 1.5)
    with GradientTape(causal=True, persistent=True) as tape:
        tape.causal.register_module(model)
        y = model(x)
        loss = ops.mean(y * y)
    assert tape.causal.layers == ("1", "3")
    assert model._hooks is None
    spikes = tape.causal.spikes()
    assert {event.layer for event in spikes} == {"1", "3"}
    for event in spikes:
        result = tape.causal.causes(event)
        assert result.total == pytest.approx(result.voltage, abs=3e-5)
    named = tape.causal.ancestors(tape.causal.spikes("3")[-1], min_influence=0.001)
    assert {one.event.layer for one in named} == {"3", "1", "1.input"}
    assert tape.causal.events[0].module == "0"
    influence = tape.causal.influence_on(loss)
    gradient = tape.gradient(loss, model[2].weight).numpy()
    ranked = influence.top(1000, "1")
    assert len(ranked) == len(tape.causal.spikes("1"))
    assert np.abs(gradient).max() > 0 < abs(ranked[0][1])


def test_dtypes(backend):
    for dtype in ("float16", "bfloat16", "float64"):
        if has_dtype(backend, dtype):
            check_dtype(dtype)


def check_dtype(dtype):
    model = nn.Sequential(layers.Dense(4, 6), layers.LIF(6), layers.Dense(6, 6), layers.ALIF(6))
    model.to(dtype=dtype)
    x = ops.astype(ops.random.normal((2, 9, 4), seed=0) * 5.0, dtype)
    with GradientTape(causal=True) as tape:
        loss = ops.sum(model(x))
    for event in tape.causal.spikes():
        result = tape.causal.causes(event)
        assert result.total == pytest.approx(result.voltage, abs=2e-5)
    named = {cause.event.layer for e in tape.causal.spikes() for cause in tape.causal.causes(e)}
    assert named == {"LIF", "LIF.input"}
    assert len(tape.causal.influence_on(loss).top(3)) == 3


def test_frozen_parameters():
    """Without gradients of parameters, the influence on a loss still exists."""
    model = nn.Sequential(layers.Dense(4, 6), layers.LIF(6))
    for parameter in model.parameters():
        parameter.trainable = False
    x = ops.random.normal((2, 9, 4), seed=0) * 5.0
    with GradientTape(causal=True) as tape:
        loss = ops.sum(model(x))
    assert tape.causal.influence_on(loss).top(1)[0][1] == 1.0
    event = tape.causal.spikes()[-1]
    assert len(tape.causal.causes(event)) == 0  # the dense layer is not recorded
    with GradientTape(causal=True) as tape:
        tape.watch(x)
        model(x)
    assert len(tape.causal.causes(event)) > 0


def test_step_by_step():
    layer = layers.RecurrentLIF(5, max_delay=3)
    x = ops.random.normal((2, 9, 5), seed=0) + 0.6
    state = layer.initial_state(2)
    with GradientTape(causal=True) as tape:
        for step in range(9):
            _, state = layer.step(x[:, step], state)
    assert tape.causal.layers[:2] == ("RecurrentLIF", "RecurrentLIF:2")
    results = [tape.causal.causes(event) for event in tape.causal.spikes()]
    assert any(result.initial for result in results)
    for result in results:
        assert result.total == pytest.approx(result.voltage, abs=2e-5)


def test_names_without_registration():
    first, second = layers.LIF(3), layers.LIF(3)
    x = ops.ones((1, 4, 3))
    with GradientTape(causal=True) as tape:
        second(first(x))
        first(x)
    assert tape.causal.layers == ("LIF", "LIF_1", "LIF:2")
    with pytest.raises(ValueError, match="name the layer, one of 'LIF', 'LIF_1', 'LIF:2'"):
        tape.causal.position(0)
    with pytest.raises(TypeError, match="register_module: expected a module, not int"):
        tape.causal.register_module(3)


def test_wrong_reports():
    x = ops.ones((1, 2, 3))
    one = ops.ones(3)
    with GradientTape(causal=True), pytest.raises(ValueError, match=r"report_spikes of net: drive"):
        report_spikes("net", x, x[:, :1], x, None, one, one)
    with pytest.raises(ValueError, match="must be at least 1"):
        synapse_taps(np.ones((2, 2)), np.zeros((2, 2), int))


def test_plots(tmp_path):
    tape, *_ = network().record()
    event = tape.causal.spikes(batch=0)[-1]
    for plot in (tape.causal.plot_raster, tape.causal.plot_space):
        ax = plot(event, str(tmp_path / "plot.png"))
        assert (tmp_path / "plot.png").stat().st_size > 5000
        assert f"neuron {event.neuron} at step {event.time}" in ax.get_title()
    causes = tape.causal.ancestors(event, 1)[1:]
    assert len(ax.get_lines()) >= len(causes) > 0
    net = network()
    net.positions = np.zeros((8, 4), np.float32)
    tape, *_ = net.record()
    with pytest.raises(ValueError, match="positions of 4 dimensions cannot be drawn"):
        tape.causal.plot_space(tape.causal.spikes()[0])
