"""Wirings of blocks: what they compute, in both forms, and how they are written down."""

from __future__ import annotations

from itertools import pairwise

import matplotlib
import numpy as np
import pytest
import torch

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn import wirings
from ember_ml.nn.blocks.ncp import HiddenBlock, InputBlock, OutputBlock
from ember_ml.nn.layers import GRU, LTC, BatchNorm, Dense, Dropout, Embedding, SelfAttention
from ember_ml.nn.tensor import array
from ember_ml.nn.wirings import (
    BlockWiring,
    Connection,
    GraphWiring,
    NCPWiring,
    ResidualWiring,
    SequentialWiring,
)
from ember_ml.registry import available as registered

matplotlib.use("Agg")


def diamond() -> GraphWiring:
    """Two ways to a gate, and one past it, a position later."""
    ops.random.set_seed(3)
    wiring = GraphWiring(merge={"join": "gate", "head": "concat"})
    wiring.add_block(GRU(3, 4), "slow").add_block(Dense(3, 4), "fast")
    wiring.add_block(Dense(4, 5, activation="tanh"), "join").add_block(Dense(9, 2), "head")
    wiring.connect("slow", "join").connect("fast", "join").connect("join", "head")
    return wiring.connect("fast", "head", delayed=True)


def looped() -> GraphWiring:
    """Return a loop with a layer that mixes positions, and layers before and after it."""
    ops.random.set_seed(4)
    wiring = GraphWiring(merge={"memory": "gate"}, outputs=["head", "encoder"])
    wiring.add_block(GRU(3, 4), "encoder").add_block(GRU(4, 4), "memory")
    wiring.add_block(Dense(4, 4, activation="tanh"), "back").add_block(Dense(4, 2), "head")
    wiring.connect("encoder", "memory").connect("memory", "back").connect("memory", "head")
    return wiring.connect("back", "memory", delayed=True)


def stacked() -> SequentialWiring:
    return SequentialWiring([Dense(3, 4), GRU(4, 4), Dense(4, 2)])


def residual() -> ResidualWiring:
    return ResidualWiring({"mix": GRU(3), "map": Dense(3, 3, activation="tanh")})


def circuit(hidden: int = 1) -> NCPWiring:
    ops.random.set_seed(5)
    wiring = NCPWiring(num_inputs=3, num_outputs=2, num_hidden=9).add_block(InputBlock("input"))
    for at in range(hidden):
        wiring.add_block(HiddenBlock(f"hidden_{at}"))
    return wiring.add_block(OutputBlock("output")).connect_ncp()


EXAMPLES = {
    "wirings/graph": [diamond, looped],
    "wirings/sequential": [stacked],
    "wirings/residual": [residual],
    "wirings/ncp_blocks": [circuit, lambda: circuit(3)],
}
MAKERS = [make for makers in EXAMPLES.values() for make in makers]
of_each = pytest.mark.parametrize("make", MAKERS)


def test_there_is_an_example_of_each() -> None:
    entries = registered("wirings")
    found = {entry.name for entry in entries if issubclass(entry.target, BlockWiring)}
    assert found == set(EXAMPLES)
    rest = [entry for entry in entries if entry.name not in found]
    assert rest
    assert all(issubclass(entry.target, wirings.NeuronWiring) for entry in rest)
    assert wirings.Wiring is BlockWiring


def sequence(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def noisy(wiring: BlockWiring) -> BlockWiring:
    """Return the module with nonzero gates and biases."""
    wiring.build(3)
    for at, parameter in enumerate(wiring.parameters()):
        parameter.assign(parameter + ops.random.normal(parameter.shape, 0.0, 0.3, seed=at))
    return wiring


def leaves(out) -> list[np.ndarray]:
    return [out[name].numpy() for name in sorted(out)] if isinstance(out, dict) else [out.numpy()]


def close(a, b, tolerance: float = 1e-5) -> bool:
    pairs = zip(leaves(a), leaves(b), strict=True)
    return all(np.allclose(x, y, rtol=tolerance, atol=tolerance) for x, y in pairs)


def by_hand(wiring: GraphWiring, x):
    """Compute `diamond` without a wiring."""
    blocks = wiring.blocks
    slow, fast = blocks["slow"](x), blocks["fast"](x)
    gate = ops.sigmoid(wiring.gates["join"])
    join = blocks["join"](slow * gate[0] + fast * gate[1])
    late = ops.concat([ops.zeros((x.shape[0], 1, 4)), fast[:, :-1]], axis=1)
    return blocks["head"](ops.concat([join, late], axis=-1))


def test_a_graph_is_the_composition_of_its_blocks() -> None:
    found = []
    for backend in available():
        with use_backend(backend):
            wiring = noisy(diamond())
            x, weights = array(sequence(2, 6, 3)), array(sequence(2, 6, 2))
            assert wiring.gates["join"].shape == (2, 4)
            assert close(wiring(x), by_hand(wiring, x), 1e-6)
            losses = [
                lambda: (wiring(x) * weights).sum(),  # noqa: B023
                lambda: (by_hand(wiring, x) * weights).sum(),  # noqa: B023
            ]
            grads, expected = (nn.value_and_grad(wiring, loss)()[1] for loss in losses)
            assert "gates.join" in grads
            assert all(np.abs(g.numpy()).max() > 1e-4 for g in grads.values())
            for name, grad in grads.items():
                assert np.allclose(grad.numpy(), expected[name].numpy(), atol=1e-5), name
            found.append({name: grad.numpy() for name, grad in grads.items()})
    for other in found[1:]:
        for name, grad in found[0].items():
            assert np.allclose(grad, other[name], rtol=1e-3, atol=1e-4), name


class Tanh(nn.Module):
    def forward(self, x):
        return ops.tanh(x)


def test_a_loop_is_a_recurrent_network(backend: str) -> None:
    twin = torch.nn.RNN(3, 4, batch_first=True)
    wiring = GraphWiring().add_block(Dense(3, 4), "read").add_block(Tanh(), "state")
    wiring.add_block(Dense(4, 4, bias=False), "recall").connect("read", "state")
    wiring.connect("state", "recall", delayed=True).connect("recall", "state")
    wiring.outputs = ("state",)
    state = {name: value.detach().numpy() for name, value in twin.named_parameters()}
    wiring.blocks["read"].weight.assign(state["weight_ih_l0"])
    wiring.blocks["read"].bias.assign(state["bias_ih_l0"] + state["bias_hh_l0"])
    wiring.blocks["recall"].weight.assign(state["weight_hh_l0"])
    x = sequence(2, 7, 3)
    expected = twin(torch.tensor(x))[0]
    assert np.allclose(wiring(array(x)).numpy(), expected.detach().numpy(), atol=1e-5)
    expected.sum().backward()
    _, grads = nn.value_and_grad(wiring, lambda: wiring(array(x)).sum())()
    for name, theirs in (("read", twin.weight_ih_l0), ("recall", twin.weight_hh_l0)):
        assert np.allclose(grads[f"blocks.{name}.weight"].numpy(), theirs.grad, atol=1e-4)


def unrolled(wiring: BlockWiring, x, timespan=None):
    state = wiring.initial_state(x.shape[0])
    outputs = []
    for at in range(x.shape[1]):
        y, state = wiring.step(x[:, at], state, timespan)
        outputs.append(y)
    if isinstance(outputs[0], dict):
        return {name: ops.stack([y[name] for y in outputs], axis=1) for name in outputs[0]}
    return ops.stack(outputs, axis=1)


@of_each
def test_steps_equal_the_whole(make, backend: str) -> None:
    wiring = noisy(make())
    x = array(sequence(2, 7, 3))
    assert close(unrolled(wiring, x), wiring(x), 1e-5)
    assert close(unrolled(wiring, x, 0.3), wiring(x, timespans=0.3), 1e-5)
    for single, first in zip(leaves(wiring(x[:, 0])), leaves(wiring(x[:, :1])), strict=True):
        assert np.allclose(single, first[:, 0], atol=1e-6)
    assert wiring.state_size > 0
    assert all(y.shape[:2] == (2, 0) for y in leaves(wiring(x[:, :0])))


@of_each
def test_padding_does_not_matter(make, backend: str) -> None:
    wiring = noisy(make())
    x, mask = sequence(2, 7, 3), np.ones((2, 7), bool)
    mask[0, :2] = mask[1, 5:] = False
    out = leaves(wiring(array(x), mask=array(mask)))
    first, second = (leaves(wiring(array(part))) for part in (x[:1, 2:], x[1:, :5]))
    for y, left, right in zip(out, first, second, strict=True):
        assert np.allclose(y[:1, 2:], left, atol=1e-5)
        assert np.allclose(y[1:, :5], right, atol=1e-5)
    with pytest.raises(
        ValueError, match=r"a mask of shape \(batch, time\) = \(2, 7\), got \(2, 3\)"
    ):
        wiring(array(x), mask=array(mask[:, :3]))


@of_each
def test_yaml_and_state_make_the_same_wiring(make, backend: str, tmp_path) -> None:
    wiring = noisy(make())
    x = sequence(2, 4, 3)
    expected = wiring(array(x))
    ember_ml.save(wiring, tmp_path / "wiring")
    for other in available():
        with use_backend(other):
            twin = Config.from_yaml(wiring.config.to_yaml()).create()
            assert twin.config == wiring.config
            assert twin.connections == wiring.connections
            assert repr(twin) == repr(wiring)
            twin.load_state_dict(wiring.state_dict())
            assert close(twin(array(x)), expected, 1e-4)
            assert close(ember_ml.load(tmp_path / "wiring")(array(x)), expected, 1e-4)


@pytest.mark.parametrize("make", [diamond, looped])
def test_it_compiles(make, backend: str, trace) -> None:
    wiring = noisy(make())
    x = array(sequence(2, 3, 3))
    compiled = trace(lambda x: wiring(x))
    assert close(compiled(x), wiring(x), 1e-4)


@of_each
def test_the_picture(make, tmp_path) -> None:
    wiring = make()
    axes = wiring.draw()
    edges = [edge for edges in wiring.plan.into.values() for edge in edges]
    arrows = {patch.get_label(): patch for patch in axes.patches if patch.get_label()}
    assert set(arrows) == {str(edge) for edge in edges}
    for edge in edges:
        assert arrows[str(edge)].get_linestyle() == ("dashed" if edge.delayed else "solid")
    written = [text.get_text() for text in axes.texts]
    assert set(wiring.blocks) <= set(written)
    assert written.count("gate") == sum(wiring.rule(n) == "gate" for n in wiring.plan.order)
    axes.figure.savefig(tmp_path / "wiring.png")
    assert (tmp_path / "wiring.png").stat().st_size > 5000
    matplotlib.pyplot.close(axes.figure)


def test_arrows_go_around_boxes() -> None:
    from ember_ml.nn.wirings._block_layout import HEIGHT, WIDTH, lay_out

    wiring = GraphWiring().add_block(Tanh(), "a").add_block(Tanh(), "b").add_block(Tanh(), "c")
    wiring.connect("a", "b").connect("b", "c").connect("a", "c")
    wiring.connect("input", "c").connect("c", "a", delayed=True)
    layout = lay_out(wiring)
    passing = [line for edge, line in layout.lines.items() if edge != ("a", "b", False)]
    for x, y in [point for line in passing for point in line]:
        for box_x, box_y in layout.boxes.values():
            assert abs(x - box_x) >= WIDTH / 2 or abs(y - box_y) > HEIGHT / 2
    axes = wiring.draw(matplotlib.pyplot.figure().add_subplot())
    matplotlib.pyplot.close(axes.figure)


def test_several_inputs_and_outputs(backend: str) -> None:
    wiring = GraphWiring(inputs=["eyes", "ears"], merge="concat")
    wiring.add_block(Dense(5, 2), "both").add_block(Dense(2, 1), "ear")
    wiring.connect("eyes", "both").connect("ears", "both").connect("ears", "ear")
    given = {"ears": array(sequence(2, 4, 2)), "eyes": array(sequence(2, 4, 3))}
    out = wiring(given)
    both = wiring.blocks["both"](ops.concat([given["eyes"], given["ears"]], axis=-1))
    assert close(out, {"both": both, "ear": wiring.blocks["ear"](given["ears"])})
    assert list(out) == ["both", "ear"]
    assert wiring.config.features == {"eyes": 3, "ears": 2}
    now = {name: x[:, 0] for name, x in given.items()}
    assert close(wiring.step(now, wiring.initial_state(2))[0], wiring(now))


def test_tokens(backend: str) -> None:
    wiring = GraphWiring().add_block(Embedding(8, 4), "embed")
    wiring.add_block(GRU(4), "mix").connect("embed", "mix")
    tokens = array(np.array([[1, 2, 3], [4, 5, 6]]))
    assert close(unrolled(wiring, tokens), wiring(tokens))
    assert close(wiring(tokens), wiring.blocks["mix"](wiring.blocks["embed"](tokens)))
    assert wiring.features == {"input": "tokens"}
    assert Config.from_yaml(wiring.config.to_yaml()).create().is_built
    assert GraphWiring(blocks=[Embedding(8, 4)]).build("tokens").widths["block_0"] == 4


def test_wirings_are_blocks(backend: str) -> None:
    inner = GraphWiring(merge="gate", name="inner").add_block(Dense(3, 3), "a")
    inner.add_block(Dense(3, 3), "b").connect("a", "b").connect("input", "b")
    outer = SequentialWiring([inner, GRU(3)])
    x = array(sequence(2, 4, 3))
    assert list(outer.blocks) == ["inner", "block_1"]
    assert close(unrolled(outer, x), outer(x))
    assert close(outer(x), outer.blocks["block_1"](inner(x)))
    again = Config.from_yaml(outer.config.to_yaml()).create()
    again.load_state_dict(outer.state_dict())
    assert "blocks.inner.gates.b" in outer.state_dict()
    assert close(again(x), outer(x))


def test_building_leaves_no_trace(backend: str) -> None:
    wiring = SequentialWiring([BatchNorm(3), Dropout(0.5), GRU(3)])
    ops.random.set_seed(1)
    before = {name: value.numpy().copy() for name, value in wiring.state_dict().items()}
    state = ops.random.get_state()
    with ember_ml.GradientTape() as tape:
        wiring.build(3)
    assert not tape.watched_variables()
    assert str(ops.random.get_state()) == str(state)
    assert all(module.training for module in wiring.modules())
    for name, value in wiring.state_dict().items():
        assert (value.numpy() == before[name]).all(), name
    wiring.blocks["block_0"].eval()
    wiring._changed()
    wiring.build()
    assert [block.training for block in wiring.blocks.values()] == [False, True, True]


def test_a_change_is_built_anew(backend: str) -> None:
    wiring = GraphWiring(features=3).add_block(Dense(3, 3), "a")
    assert not wiring.is_built
    assert wiring(ops.ones((1, 2, 3))).shape == (1, 2, 3)
    wiring.add_block(Dense(3, 4), "b").connect("a", "b")
    assert not wiring.is_built
    assert wiring(ops.ones((1, 2, 3))).shape == (1, 2, 4)
    with pytest.raises(
        ValueError, match=r"shape \(batch, time, 3\) for the input 'input', got \(1, 2, 4\)"
    ):
        wiring(ops.ones((1, 2, 4)))


def test_what_is_not_in_a_loop_may_see_the_whole(backend: str) -> None:
    both_ways = GRU(3, 2, bidirectional=True)
    wiring = GraphWiring().add_block(both_ways, "read").add_block(Dense(4, 4), "loop")
    wiring.connect("read", "loop").connect("loop", "loop", delayed=True)
    assert not wiring.is_causal
    assert wiring(array(sequence(2, 5, 3))).shape == (2, 5, 4)
    with pytest.raises(ValueError, match="'read' cannot run position by position: GRU needs"):
        unrolled(wiring, array(sequence(2, 5, 3)))


def test_widths_in_loops(backend: str) -> None:
    """Widths are inferred in loops: with a concatenation, a sum, or not at all."""
    x = array(sequence(1, 3, 2))
    concatenated = GraphWiring(merge="concat").add_block(GRU(6, 4), "a").connect("input", "a")
    assert concatenated.connect("a", "a", delayed=True)(x).shape == (1, 3, 4)
    alone = GraphWiring().add_block(Dense(4, 2), "back").add_block(Dense(2, 4), "out")
    alone.connect("input", "out").connect("back", "out").connect("out", "back", delayed=True)
    alone.outputs = ("out",)
    alone.build(2)
    assert close(unrolled(alone, x), alone(x))
    silent = GraphWiring(merge="concat").add_block(Tanh(), "a").connect("input", "a")
    silent.connect("a", "a", delayed=True)
    with pytest.raises(ValueError, match="output features of 'a' is unknown before it runs"):
        silent(x)


def test_the_example_of_the_circuit(backend: str) -> None:
    wiring = NCPWiring(num_inputs=10, num_outputs=5, num_hidden=20)
    wiring.add_block(InputBlock("input"))
    wiring.add_block(HiddenBlock("hidden"))
    wiring.add_block(OutputBlock("output"))
    wiring.connect_ncp()
    assert wiring(ops.ones((2, 3, 10))).shape == (2, 3, 5)
    assert wiring(ops.ones((2, 10))).shape == (2, 5)
    assert wiring.connections == [Connection("input", "hidden"), Connection("hidden", "output")]


@pytest.mark.parametrize("hidden", [1, 2, 4])
def test_the_neurons_of_a_circuit_are_parted(hidden: int) -> None:
    wiring = circuit(hidden)
    whole = wirings.AutoNCP(11, 2, inter_layers=max(hidden - 1, 1)).build(3)
    inner = sensory = 0
    for block in list(wiring.blocks.values())[1:]:
        part = block.layer.cells[0].wiring
        assert part.output_dim == part.units
        inner, sensory = inner + part.synapse_count, sensory + part.sensory_synapse_count
    assert inner + sensory == whole.synapse_count + whole.sensory_synapse_count
    names = list(wiring.blocks)
    assert wiring.connections == [Connection(*pair) for pair in pairwise(names)]
    if hidden == 4:  # the layers in order
        units = [wiring.blocks[name].layer.cells[0].wiring.units for name in names[1:]]
        assert units == [len(layer) for layer in whole.layers]
    assert wiring.circuit.synapses() == whole.synapses()


def whole_and_parts(unfolds: int) -> tuple[LTC, NCPWiring]:
    """One layer over a circuit, and blocks with its weights."""
    wiring = circuit()
    whole = LTC(3, wirings.AutoNCP(11, 2), ode_unfolds=unfolds)
    cell = whole.cells[0]
    hidden, output = (wiring.blocks[name].layer.cells[0] for name in ("hidden_0", "output"))
    hidden.ode_unfolds = output.ode_unfolds = unfolds
    for name in ("gleak", "vleak", "cm"):
        values = getattr(cell, name).numpy()
        getattr(output, name).assign(values[:2])
        getattr(hidden, name).assign(values[2:])
    synapses = cell.wiring.synapses()
    to_motor = np.array([dest < 2 for _, dest, _ in synapses])
    for name in ("w", "sigma", "mu", "erev"):
        values = getattr(cell, name).numpy()
        getattr(hidden, name).assign(values[~to_motor])
        getattr(hidden, f"sensory_{name}").assign(getattr(cell, f"sensory_{name}").numpy())
        getattr(output, f"sensory_{name}").assign(values[to_motor])
    return whole, wiring


def test_hidden_neurons_are_those_of_one_layer(backend: str) -> None:
    whole, wiring = whole_and_parts(6)
    x = array(sequence(2, 5, 3))
    hidden = wiring.blocks["hidden_0"](x)
    state = whole.initial_state(2)
    for at in range(5):
        _, state = whole.step(x[:, at], state)
        assert np.allclose(hidden[:, at].numpy(), state[:, 2:].numpy(), atol=1e-5)
    assert not close(wiring(x), whole(x), 1e-3)  # motor neurons read them at another time


def test_delayed_blocks_are_one_layer_if_a_step_has_one_part(backend: str) -> None:
    whole, wiring = whole_and_parts(1)
    late = [("input", "hidden_0"), {"from": "hidden_0", "to": "output", "delayed": True}]
    graph = GraphWiring(inputs="x", blocks=wiring.blocks, connections=late)
    x = array(sequence(2, 5, 3))
    assert close(graph(x), whole(x), 1e-5)


def test_a_circuit_of_closed_form_cells(backend: str) -> None:
    blocks = [InputBlock(), HiddenBlock(cell="cfc"), OutputBlock(cell="cfc")]
    wiring = NCPWiring(3, 2, 9, blocks=blocks)
    x = array(sequence(2, 4, 3))
    assert close(unrolled(wiring, x), wiring(x))
    assert Config.from_yaml(wiring.config.to_yaml()).create().blocks["hidden"].cell == "cfc"


def chain(*names: str, **options) -> GraphWiring:
    """Blocks one after the other, all of width 3."""
    wiring = GraphWiring(**options)
    for name in names:
        wiring.add_block(Dense(3, 3), name)
    for source, target in pairwise(names):
        wiring.connect(source, target)
    return wiring


def ring() -> GraphWiring:
    return chain("a", "b", "c").connect("c", "b")


def lonely() -> GraphWiring:
    return chain("a", "b").add_block(Dense(3, 3), "c")


def two_inputs() -> GraphWiring:
    return chain("a", "b", inputs=["x", "y"])


def wide(**options) -> GraphWiring:
    wiring = GraphWiring(**options).add_block(Dense(3, 16), "encoder")
    return wiring.add_block(Dense(32, 2), "decoder").connect("encoder", "decoder")


def wrapped() -> GraphWiring:
    wiring = GraphWiring().add_block(Dense(3, 16), "encoder")
    return wiring.add_block(nn.Sequential(Dense(32, 2)), "decoder").connect("encoder", "decoder")


def uneven() -> GraphWiring:
    return chain("a", "b", "c").add_block(Dense(3, 5), "d").connect("input", "d").connect("d", "c")


def last_only() -> SequentialWiring:
    return SequentialWiring({"read": GRU(3, 4, return_sequences=False), "head": Dense(4, 2)})


def blind() -> GraphWiring:
    wiring = chain("a").add_block(SelfAttention(3, causal=False, positions="none"), "look")
    return wiring.connect("a", "look").connect("look", "a", delayed=True)


class Box(nn.Module):
    def __init__(self) -> None:
        self.inner = GRU(3)

    def forward(self, x):
        return self.inner(x)


def boxed() -> GraphWiring:
    wiring = GraphWiring().add_block(Box(), "box")
    return wiring.connect("box", "box", delayed=True)


def split() -> SequentialWiring:
    return SequentialWiring({"two": lonely().connect("input", "c"), "one": Dense(3, 3)})


WRONG = [
    (ring, r"GraphWiring: 'b' -> 'c' -> 'b' is a cycle; one of its connections must be delayed"),
    (lambda: chain("a").connect("a", "a"), "'a' -> 'a' is a cycle"),
    (lonely, "'c' is not connected"),
    (lambda: chain("a", "b", outputs="a"), "no block reads the output of 'b'; .* outputs 'a'"),
    (lambda: chain("a", outputs="aa"), "outputs: there is no block 'aa'; did you mean 'a'"),
    (
        lambda: chain("a", merge={"encoder": "sum"}),
        "merge: there is no block 'encoder'; there are 'a'",
    ),
    (two_inputs, "no input leads to 'a'; the inputs are 'x', 'y'"),
    (lambda: two_inputs().connect("x", "a"), "no block reads the input 'y'"),
    (GraphWiring, "there are no blocks"),
    (wide, "'encoder' returns 16 features, 'decoder' expects 32"),
    (
        wrapped,
        r"returns shape \(1, 2, 16\), which 'decoder' does not accept: Dense: expected 32",
    ),
    (
        lambda: wide().connect("input", "decoder"),
        "'encoder' and 'input' return 16 and 3 features, which",
    ),
    (
        lambda: wide(merge="concat").connect("input", "decoder"),
        "'encoder' and 'input' return 19 features, 'decoder' expects 32",
    ),
    (uneven, r"'b' and 'd' return 3 and 5 features, .* added at 'c'; merge={'c': \"concat\"}"),
    (lambda: uneven().connect("c", "b", delayed=True), "'b' and 'd' return 3 and 5"),
    (
        lambda: chain("a").add_block(Dense(4, 4), "b").connect("a", "b"),
        "'a' returns 3 .* 'b' expects 4",
    ),
    (last_only, r"'read' returns shape \(1, 4\) .* 'head' expects \(batch, time, features\)"),
    (blind, "'look' cannot run position by position: SelfAttention needs"),
    (boxed, "'box' cannot run position by position: Box holds modules that mix positions"),
    (split, "'two' returns a dict, not a tensor"),
    (lambda: ResidualWiring([Dense(3, 4)]), "'block_0' returns shape .* added to its input"),
    (
        lambda: NCPWiring(3, 2, 9, blocks=[InputBlock()]),
        r"NCPWiring: .* call connect_ncp\(\) first",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_a_wiring_that_is_not_whole_says_why(make, message: str, backend: str) -> None:
    wiring = make()
    with pytest.raises(ValueError, match=message):
        wiring.build(3 if len(wiring.inputs) == 1 else {"x": 3, "y": 3})
    assert not wiring.is_built
    x = ops.ones((1, 2, 3))
    with pytest.raises(ValueError, match=message):
        wiring(x if len(wiring.inputs) == 1 else {"x": x, "y": x})


def roles(*blocks) -> NCPWiring:
    wiring = NCPWiring(3, 2, 9)
    for block in blocks:
        wiring.add_block(block)
    return wiring


REFUSED = [
    (lambda: chain("a").add_block(Dense(3, 3), "a"), "there is already a block 'a'"),
    (lambda: chain("a.b"), r"a name must be a string without dots, not 'a\.b'"),
    (lambda: chain("input"), "'input' is the name of an input"),
    (lambda: chain("a").add_block(ops.tanh), "a block must be a module"),
    (lambda: chain("a", "b").connect("a", "b"), "'a' is already connected to 'b'"),
    (lambda: chain("a").connect("a", "input"), "'input' is an input and cannot be a target"),
    (lambda: chain("encoder").connect("encodr", "encoder"), r"connect: .* did you mean 'encoder'"),
    (lambda: chain("a").connect(Dense(3, 3), "a"), "Dense is not a block of this wiring"),
    (lambda: GraphWiring(inputs=["x", "x"]), "one or more names, each once"),
    (lambda: GraphWiring(inputs=[]), "one or more names"),
    (lambda: GraphWiring(merge="mean"), "merge: should be 'sum', 'concat' or 'gate', not 'mean'"),
    (lambda: GraphWiring(merge={"a": 1}), "merge: 'a' should be 'sum', 'concat' or 'gate'"),
    (lambda: GraphWiring(connections=[["a"]]), r"connections\.0: should be \[source, target\]"),
    (lambda: GraphWiring(connections=[{"form": "a"}]), "no key 'form'; did you mean 'from'"),
    (lambda: GraphWiring(connections=[("a", "b", "c")]), "delayed should be true or false"),
    (lambda: GraphWiring(blocks={"a": {"type": "layers/dens"}}), r"blocks\.a\.type: .* 'dense'"),
    (lambda: GraphWiring(blocks=[InputBlock(), InputBlock()]), "two blocks are named 'input'"),
    (
        lambda: chain("a").initial_state(1) and chain("a").connect("a", "a", True).initial_state(1),
        "not built",
    ),
    (
        lambda: two_inputs().connect("x", "a").connect("y", "a")(ops.ones((1, 2, 3))),
        "pass a dict of",
    ),
    (lambda: two_inputs().connect("x", "a").connect("y", "a")({"x": 1}), "input 'y' is missing"),
    (lambda: chain("a")({"inputs": 1}), "no block 'inputs'; did you mean 'input'"),
    (lambda: stacked().connect("block_0", "block_2"), "connected to the one before it"),
    (lambda: circuit().connect("input", "output"), r"connected by connect_ncp\(\)"),
    (lambda: circuit().connect_ncp(), "connected already"),
    (lambda: circuit().add_block(HiddenBlock("more")), "connected already"),
    (lambda: roles(HiddenBlock(), OutputBlock()).connect_ncp(), "there is no input block"),
    (lambda: roles(InputBlock(), OutputBlock()).connect_ncp(), "there is no hidden block"),
    (lambda: roles(InputBlock(), HiddenBlock()).connect_ncp(), "there is no output block"),
    (lambda: roles(Dense(3, 3)), "'block_0' needs a role"),
    (
        lambda: roles(InputBlock(), InputBlock("b"), HiddenBlock(), OutputBlock()).connect_ncp(),
        "'input' and 'b' are both input blocks",
    ),
    (
        lambda: NCPWiring(3, 2, 2, blocks=[InputBlock(), HiddenBlock(), OutputBlock()]),
        "num_hidden=2 is too few",
    ),
    (lambda: HiddenBlock("h")(ops.ones((1, 2, 3))), "HiddenBlock 'h' is not wired: .* connect_ncp"),
    (lambda: InputBlock().step(ops.ones((1, 3)), ()), "InputBlock 'input' is not wired"),
    (
        lambda: circuit()(ops.ones((1, 2, 4))),
        r"expected shape \(batch, time, 3\) for the input 'sensory'",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_cannot_be_is_refused(make, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@of_each
def test_parts_of_padded_sequences_equal_each_alone(make, backend: str) -> None:
    wiring = noisy(make())
    x, lengths = sequence(2, 9, 3), [9, 5]
    mask = np.arange(9) < np.array(lengths)[:, None]
    for size in (1, 4, 9):
        state, outputs = wiring.initial_state(2), []
        for start in range(0, 9, size):
            part = slice(start, start + size)
            y, state = wiring(array(x[:, part]), array(mask[:, part]), state=state)
            outputs.append(leaves(y))
        after, _ = wiring.step(array(x[:, 0]), state)
        for at, n in enumerate(lengths):
            longer = np.concatenate([x[at : at + 1, :n], x[at : at + 1, :1]], axis=1)
            for place, expected in enumerate(leaves(wiring(array(longer)))):
                whole = np.concatenate([output[place] for output in outputs], axis=1)
                assert np.allclose(whole[at, :n], expected[0, :n], atol=1e-4)
                assert np.allclose(leaves(after)[place][at], expected[0, n], atol=1e-4)


def test_a_growing_state_can_be_masked(backend: str) -> None:
    wiring = chain("a").add_block(SelfAttention(3, positions="none"), "look").connect("a", "look")
    wiring.connect("look", "a", delayed=True).build(3)
    x = array(sequence(2, 4, 3))
    assert close(unrolled(wiring, x), wiring(x))
    mask = array([[True, True, True, True], [True, True, False, False]])
    padded = wiring(x, mask=mask)
    assert close(padded[:1], wiring(x[:1]))
    assert close(padded[1:, :2], wiring(x[1:, :2]))


class Pair(GraphWiring):
    """A subclass, whose arguments no config checks."""

    def __init__(self) -> None:
        late = {"from": "block_1", "to": "block_0", "delayed": True}
        super().__init__("eyes", [Dense(3, 3), Dense(3, 3)], [("block_0", "block_1"), late])


def test_a_subclass_of_a_graph(backend: str) -> None:
    wiring = Pair()
    assert [str(edge) for edge in wiring.connections] == [
        "block_0 -> block_1",
        "block_1 ~> block_0",
    ]
    assert wiring(ops.ones((1, 2, 3))).shape == (1, 2, 3)
    assert wiring.features == {"eyes": 3}


def test_blocks_may_be_given_as_such() -> None:
    first, second = Dense(3, 3), Dense(3, 3)
    wiring = GraphWiring().add_block(first).add_block({"type": "layers/dense", **DENSE})
    wiring.add_block(second, "last").connect(first, "block_1").connect("block_1", second)
    assert list(wiring.blocks) == ["block_0", "block_1", "last"]
    assert wiring.connections == [("block_0", "block_1", False), ("block_1", "last", False)]
    shared = GraphWiring().add_block(first, "a").add_block(first, "b")
    with pytest.raises(ValueError, match="Dense has several names"):
        shared.connect(first, "b")


DENSE = {"in_features": 3, "out_features": 3}
