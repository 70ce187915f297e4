"""Influence, ancestors, descendants, light cones and graphs of spikes."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest

from ember_ml import GradientTape
from ember_ml._core.errors import ArgumentTypeError
from ember_ml.autodiff.causal import SpikeEvent
from tests.unit.autodiff.spiking_runs import KINDS, Network, network
from tests.unit.autodiff.test_spike_causes import two_layers

pytestmark = pytest.mark.usefixtures("backend")
CHAIN = {"soft": {}, "hard": {"reset": "hard"}}


def edges_by_hand(context):
    """Return the share of each cause of each spike, from the listed contributions."""
    shares = {}
    for event in context.spikes():
        result = context.causes(event, top=None)
        rest = abs(result.external) + abs(result.initial)
        if result.resets:
            own = [
                one
                for one in context.spikes(event.layer, event.batch, event.neuron)
                if one.time < event.time
            ]
            rest += sum(0.9 ** (event.time - one.time) for one in own)
        total = rest + sum(abs(cause.contribution) for cause in result)
        assert result.magnitude == pytest.approx(total, rel=1e-5)
        for cause in result:
            shares[cause.event, event] = abs(cause.contribution) / total
    return shares


@pytest.mark.parametrize("kind", CHAIN)
def test_influence_is_the_sum_over_paths(kind):
    """Against the powers of the matrix of shares: (I - S)^-1 sums all paths."""
    tape, *_ = network(steps=16, **CHAIN[kind]).record()
    context = tape.causal
    events = context.spikes(batch=0)
    place = {event: at for at, event in enumerate(events)}
    matrix = np.zeros((len(events), len(events)))
    for (cause, effect), share in edges_by_hand(context).items():
        if effect.batch == 0:
            matrix[place[cause], place[effect]] = share
    sums = np.linalg.inv(np.eye(len(events)) - matrix)
    for cause, effect in itertools.product(events[::4], events[::5]):
        expected = sums[place[cause], place[effect]]
        assert context.influence(cause, effect) == pytest.approx(expected, abs=1e-9)
    last = events[-1]
    found = {one.event: one.influence for one in context.ancestors(last, min_influence=0.0)}
    assert found == pytest.approx(
        {event: sums[place[event], -1] for event in events if sums[place[event], -1] > 0.0}
    )
    first = events[0]
    after = context.descendants(first, min_influence=0.0)
    assert {one.event: one.influence for one in after} == pytest.approx(
        {event: sums[0, place[event]] for event in events[1:] if sums[0, place[event]] > 0.0}
    )
    twice = {one.event: one.influence for one in context.ancestors(last, 2, 0.0)}
    near = np.eye(len(events)) + matrix + matrix @ matrix
    assert twice == pytest.approx(
        {event: near[place[event], -1] for event in events if near[place[event], -1] > 0.0}
    )
    strong = context.ancestors(last, min_influence=0.05)
    assert strong[0] == (last, 1.0)
    assert all(one.influence >= 0.05 for one in strong)
    times = [one.event.time for one in strong]
    assert times == sorted(times, reverse=True)


def test_rows_do_not_influence_each_other():
    tape, *_ = network().record()
    first, second = tape.causal.spikes(batch=0)[0], tape.causal.spikes(batch=1)[-1]
    assert tape.causal.influence(first, second) == 0.0
    with pytest.raises(ValueError, match="rows of a batch do not influence each other"):
        tape.causal.but_for(first, second)


def test_paths_cross_layers():
    tape, x, *_ = two_layers()
    context = tape.causal
    last = context.spikes("second", batch=0)[-1]
    layers = {one.event.layer for one in context.ancestors(last, min_influence=1e-4)}
    assert layers == {"second", "first", "first.input"}
    inputs = SpikeEvent("first.input", 0, *map(int, np.argwhere(x.numpy()[0])[0]))
    direct = {
        event: abs(cause.contribution) / context.causes(event, None).magnitude
        for event in context.spikes("first", batch=0)
        for cause in context.causes(event, None)
        if cause.event == inputs
    }
    after = {one.event: one.influence for one in context.descendants(inputs, 1, 0.0)}
    assert after == pytest.approx(direct)


@pytest.mark.parametrize("kind", ["soft", "hard", "synaptic"])
def test_graph(kind):
    net = network(**KINDS[kind])
    tape, *_ = net.record()
    graph = tape.causal.to_networkx()
    assert networkx.is_directed_acyclic_graph(graph)
    assert set(graph) == set(tape.causal.spikes())
    assert graph.number_of_edges() > 50
    for cause, effect, edge in graph.edges(data=True):
        assert edge["delay"] == net.delays[effect.neuron, cause.neuron]
        assert cause.time + edge["delay"] <= effect.time
        assert cause.batch == effect.batch
    event = tape.causal.spikes()[-1]
    part = tape.causal.to_networkx(event, min_influence=0.05)
    assert 1 < len(part) < len(graph)
    assert set(part) == {event, *networkx.ancestors(part, event)}
    assert graph.nodes[event]["position"] == tape.causal.position(event)
    assert graph.nodes[event]["voltage"] == tape.causal.causes(event).voltage
    ops_graph = tape.causal.to_networkx(level="ops")
    assert not any(isinstance(node, SpikeEvent) for node in ops_graph)


def test_light_cone():
    """A chain 0 -> 1 -> 2 with delays 2 and 3; every neuron spikes in every step."""
    weight = np.zeros((3, 3))
    weight[1, 0] = weight[2, 1] = 0.5
    delays = np.ones((3, 3), int)
    delays[1, 0], delays[2, 1] = 2, 3
    places = np.float32([[0, 0], [2, 0], [2, 3]])
    net = Network(np.full((1, 8, 3), 5.0), weight, delays, reset="hard", positions=places)
    tape, *_ = net.record()
    event = SpikeEvent("net", 0, 7, 2)
    steps = {neuron: set() for neuron in range(3)}
    for one in tape.causal.light_cone(event):
        steps[one.neuron].add(one.time)
    assert steps == {0: {0, 1, 2}, 1: {0, 1, 2, 3, 4}, 2: {0, 1, 2, 3, 4, 5, 6}}
    after = tape.causal.light_cone(SpikeEvent("net", 0, 1, 0), future=True)
    assert {(one.neuron, one.time) for one in after} == {
        *((0, t) for t in range(2, 8)),
        *((1, t) for t in range(3, 8)),
        (2, 6),
        (2, 7),
    }
    fast = tape.causal.light_cone(event, speed=1.5)
    assert {one.time for one in fast if one.neuron == 1} == set(range(6))
    assert {one.time for one in fast if one.neuron == 0} == set(range(5))
    with pytest.raises(ValueError, match=r"speed \(0\) must be a finite number above 0"):
        tape.causal.light_cone(event, speed=0)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_causes_and_ancestors_lie_in_the_light_cone(kind):
    tape, *_ = network(**CHAIN[kind]).record()
    for event in tape.causal.spikes()[::7]:
        cone = {*tape.causal.light_cone(event), event}
        assert {one.event for one in tape.causal.ancestors(event, min_influence=0.0)} <= cone


def test_the_cone_crosses_layers():
    tape, *_ = two_layers()
    event = tape.causal.spikes("second", batch=0)[-1]
    cone = tape.causal.light_cone(event)
    assert {one.layer for one in cone} == {"first", "second"}
    first = tape.causal.spikes("first", batch=0)[0]
    assert {one.layer for one in tape.causal.light_cone(first, future=True)} == {"first", "second"}


def test_space():
    net = network()
    tape, *_ = net.record()
    a, b = tape.causal.spikes()[:2]
    assert tape.causal.position(3) == pytest.approx(net.positions[3])
    assert tape.causal.proximity(1, 4) == pytest.approx(
        np.linalg.norm(net.positions[1].astype(float) - net.positions[4])
    )
    assert tape.causal.proximity(a, b) == tape.causal.proximity(a.neuron, b.neuron)
    with pytest.raises(LookupError, match="has the neurons 0 to 7, not 8"):
        tape.causal.position(8)
    net.positions = None
    tape, *_ = net.record()
    with pytest.raises(ValueError, match="the neurons of 'net' have no positions"):
        tape.causal.proximity(0, 1)
    with pytest.raises(ValueError, match="have no positions"):
        tape.causal.light_cone(tape.causal.spikes()[-1], speed=1.0)


def test_wrong_limits():
    tape, *_ = network().record()
    event = tape.causal.spikes()[-1]
    with pytest.raises(ValueError, match="depth must be at least 0, not -1"):
        tape.causal.ancestors(event, depth=-1)
    with pytest.raises(ValueError, match=r"min_influence \(1.5\) must be from 0 to 1"):
        tape.causal.descendants(event, min_influence=1.5)
    assert [one.event for one in tape.causal.ancestors(event, depth=0)] == [event]


def test_wrong_types():
    tape, *_ = network().record()
    causal = tape.causal
    event = causal.spikes()[-1]
    calls = [
        lambda: causal.ancestors("spike"),
        lambda: causal.descendants(None),
        lambda: causal.ancestors(event, depth=1.5),
        lambda: causal.descendants(event, min_influence="all"),
        lambda: causal.causes(event, top="all"),
        lambda: causal.light_cone(event, speed="fast"),
        lambda: causal.influence_on(None),
        lambda: causal.spikes(layer=3),
        lambda: causal.spikes(batch="first"),
        lambda: GradientTape(causal=True, max_events=1.5),
    ]
    for call in calls:
        with pytest.raises(ArgumentTypeError):
            call()
