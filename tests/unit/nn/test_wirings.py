"""Wirings of neurons against ncps, and what they say of themselves."""

from __future__ import annotations

import hashlib

import matplotlib
import ncps.wirings
import numpy as np
import pytest

from ember_ml.configs import Config
from ember_ml.nn import wirings

matplotlib.use("Agg")

PAIRS = [
    (
        lambda: wirings.NCP(10, 10, 8, 6, 6, 4, 6),
        lambda: ncps.wirings.NCP(10, 10, 8, 6, 6, 4, 6),
        8,
        (112, 48),
    ),
    (
        lambda: wirings.NCP(10, 10, 8, 1, 1, 4, 1, seed=3),  # with neurons that are left out
        lambda: ncps.wirings.NCP(10, 10, 8, 1, 1, 4, 1, seed=3),
        3,
        None,
    ),
    (lambda: wirings.AutoNCP(16, 4), lambda: ncps.wirings.AutoNCP(16, 4), 8, (28, 32)),
    (lambda: wirings.AutoNCP(28, 10), lambda: ncps.wirings.AutoNCP(28, 10), 8, (70, 40)),
    (lambda: wirings.AutoNCP(64, 4), lambda: ncps.wirings.AutoNCP(64, 4), 16, (504, 288)),
    (lambda: wirings.Random(16, 2, 0.75), lambda: ncps.wirings.Random(16, 2, 0.75), 4, (64, 16)),
    (
        lambda: wirings.FullyConnected(8, 4),
        lambda: ncps.wirings.FullyConnected(8, 4),
        3,
        (64, 24),
    ),
    (
        lambda: wirings.FullyConnected(8, 4, self_connections=False),
        lambda: ncps.wirings.FullyConnected(8, 4, self_connections=False),
        3,
        (56, 24),
    ),
]


@pytest.mark.parametrize(("make", "reference", "inputs", "counts"), PAIRS)
def test_the_synapses_are_those_of_ncps(make, reference, inputs: int, counts) -> None:
    ours, theirs = make().build(inputs), reference()
    theirs.build(inputs)
    assert (ours.adjacency == theirs.adjacency_matrix).all()
    assert (ours.sensory_adjacency == theirs.sensory_adjacency_matrix).all()
    if counts:
        assert (ours.synapse_count, ours.sensory_synapse_count) == counts
    assert ours.layers == [theirs.get_neurons_of_layer(at) for at in range(theirs.num_layers)]


def test_the_published_hashes() -> None:
    wiring = wirings.AutoNCP(64, 4).build(16)

    def digest(matrix) -> str:
        return hashlib.sha256(matrix.astype(np.int8).tobytes()).hexdigest()[:16]

    assert digest(wiring.adjacency) == "ce0ac92f9aba43e2"
    assert digest(wiring.sensory_adjacency) == "c305637b024bd5e2"


@pytest.mark.parametrize("make", [pair[0] for pair in PAIRS])
def test_building_again_changes_nothing(make) -> None:
    wiring = make().build(3)
    before = wiring.adjacency.copy(), wiring.sensory_adjacency.copy()
    wiring.build(3)
    assert (wiring.adjacency == before[0]).all()
    assert (wiring.sensory_adjacency == before[1]).all()
    with pytest.raises(ValueError, match="built for 3 inputs, not for 4"):
        wiring.build(4)


@pytest.mark.parametrize(
    "wiring",
    [
        *[pair[0]() for pair in PAIRS],
        wirings.NCP((6, 4), 5, 2, 3, (2, 3), 4, 2),
        wirings.AutoNCP(30, 3, inter_layers=2),
        wirings.CustomWiring(3, 1, [(1, 0, -1), (2, 1, 1)], [(0, 2, 1), (1, 2, -1)]),
    ],
)
def test_the_config_gives_the_same_wiring(wiring) -> None:
    again = Config.from_yaml(wiring.config.to_yaml()).create()
    assert again.build(2).synapses() == wiring.copy().build(2).synapses()
    assert again.sensory_synapses() == wiring.copy().build(2).sensory_synapses()


def test_several_inter_layers() -> None:
    wiring = wirings.NCP((6, 4), 5, 2, 3, 2, 4, 2).build(3)
    first, second, command, motor = wiring.layers
    assert [len(layer) for layer in wiring.layers] == [6, 4, 5, 2]
    follows = {neuron: set(second) for neuron in first} | {
        neuron: set(command) for neuron in second
    }
    follows |= {neuron: {*command, *motor} for neuron in command}
    assert all(dest in follows[src] for src, dest, _ in wiring.synapses())
    assert {dest for _, dest, _ in wiring.sensory_synapses()} == set(first)
    assert wiring.unreached() == wiring.unused() == []
    assert [wiring.type_of(neuron) for neuron in (0, 2, 7)] == ["motor", "command", "inter"]
    assert wirings.AutoNCP(30, 3, inter_layers=2).inter_neurons == (9, 8)


def test_reach() -> None:
    wiring = wirings.CustomWiring(5, 1, [(1, 0, 1), (2, 1, 1), (0, 3, 1)], [(0, 1, 1)]).build(1)
    assert wiring.unreached() == [2, 4]
    assert wiring.unused() == [3, 4]


def test_added_synapses_outlast_build() -> None:
    wiring = wirings.FullyConnected(3)
    sign = -int(wiring.adjacency[0, 1])
    wiring.add_synapse(0, 1, sign)
    assert wiring.build(2).adjacency[0, 1] == sign


def test_networkx_and_picture(tmp_path) -> None:
    wiring = wirings.AutoNCP(16, 4).build(8)
    graph = wiring.to_networkx()
    assert graph.number_of_nodes() == 24
    assert graph.number_of_edges() == 60
    assert graph.nodes["neuron_0"]["neuron_type"] == "motor"
    src, dest, sign = wiring.synapses()[0]
    polarity = graph.edges[f"neuron_{src}", f"neuron_{dest}"]["polarity"]
    assert polarity == ("excitatory" if sign > 0 else "inhibitory")
    assert wirings.FullyConnected(3).to_networkx(sensory=False).number_of_edges() == 9
    axes = wiring.draw()
    styles = [text.arrowprops["linestyle"] for text in axes.texts]
    signs = [sign for _, _, sign in wiring.synapses() + wiring.sensory_synapses()]
    assert styles.count("dashed") == signs.count(-1)
    assert len(styles) == 60
    axes.figure.savefig(tmp_path / "wiring.png")
    matplotlib.pyplot.close(axes.figure)


BROKEN = [
    (lambda: wirings.NeuronWiring(3).add_synapse(3, 0, 1), r"source must be from 0 to 2"),
    (lambda: wirings.NeuronWiring(3).add_synapse(0, -1, 1), r"destination must be from 0 to 2"),
    (lambda: wirings.NeuronWiring(3).add_synapse(0, 1, 2), r"polarity must be 1 or -1"),
    (lambda: wirings.NeuronWiring(3).add_sensory_synapse(0, 1, 1), r"call build\(input_dim\)"),
    (lambda: wirings.NeuronWiring(3).build(1).add_sensory_synapse(1, 1, 1), "from 0 to 0"),
    (lambda: wirings.NeuronWiring(3).sensory_synapse_count, "build"),
    (lambda: wirings.NeuronWiring(3, 4), r"output_dim=4 must be from 1 to units=3"),
    (lambda: wirings.NCP(4, 3, 2, 2, 2, 1, 4), "motor_fanin=4, but the layer has only 3"),
    (lambda: wirings.NCP(4, 3, 2, 5, 2, 1, 2), "sensory_fanout=5, but the layer has only 4"),
    (lambda: wirings.NCP(4, 3, 2, 2, 4, 1, 2), "inter_fanout=4, but the layer has only 3"),
    (lambda: wirings.NCP((4, 4), 3, 2, 2, (1, 1, 1), 1, 2), "one number, or one per layer"),
    (lambda: wirings.AutoNCP(8, 6), "output_size=6 must be below units - 2 = 6"),
    (lambda: wirings.AutoNCP(8, 2, sparsity_level=0.95), "sparsity_level"),
    (lambda: wirings.AutoNCP(8, 2, sparsity_level=0.05), "sparsity_level"),
    (lambda: wirings.Random(8, 2, sparsity_level=1.0), "sparsity_level"),
]


@pytest.mark.parametrize(("make", "message"), BROKEN)
def test_what_cannot_be_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
