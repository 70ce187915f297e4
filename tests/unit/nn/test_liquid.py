"""Tests of liquid and closed-form layers against ncps with the same weights."""

from __future__ import annotations

import ncps.torch
import ncps.wirings
import numpy as np
import pytest
import torch

from ember_ml import nn, ops
from ember_ml.configs import Config
from ember_ml.nn import wirings
from ember_ml.nn.layers.sequence_mixing import recurrent
from ember_ml.nn.layers.sequence_mixing.recurrent._synapses import stages
from ember_ml.nn.tensor import array

FEATURES = 3
WIRINGS = {
    "ncp": (lambda: wirings.AutoNCP(12, 3), lambda: ncps.wirings.AutoNCP(12, 3)),
    "sparse": (
        lambda: wirings.NCP(40, 12, 3, 20, 8, 6, 6),
        lambda: ncps.wirings.NCP(40, 12, 3, 20, 8, 6, 6),
    ),
    "full": (lambda: wirings.FullyConnected(5, 2), lambda: ncps.wirings.FullyConnected(5, 2)),
    "random": (lambda: wirings.Random(7, 2, 0.6), lambda: ncps.wirings.Random(7, 2, 0.6)),
}


@pytest.fixture(autouse=True)
def seed() -> None:
    """Use the same initial weights in every run: the tolerances are tight."""
    ops.random.set_seed(0)


def close(ours, theirs, tolerance: float = 5e-6) -> bool:
    theirs = theirs.detach() if isinstance(theirs, torch.Tensor) else theirs
    return bool(np.abs(ours.numpy() - np.asarray(theirs)).max() < tolerance)


def inputs(*shape: int, seed: int = 0):
    x = ops.random.normal(shape, seed=seed)
    return x, torch.tensor(x.numpy())


def synapses_of(cell, name: str):
    """Return the indices of the synapses in the matrices of ncps."""
    by_name = cell.wiring.sensory_synapses() if "sensory" in name else cell.wiring.synapses()
    return [src for src, _, _ in by_name], [dest for _, dest, _ in by_name]


def ltc_weights(cell, twin) -> dict[str, tuple[torch.Tensor, object]]:
    """Return, by our parameter name, the parameter of ncps and the indices of our values in it."""
    by_name = {}
    for name, _ in cell.named_parameters():
        theirs = getattr(twin, name)
        by_name[name] = theirs, synapses_of(cell, name) if theirs.ndim == 2 else ...
    return by_name


def cfc_weights(cell, twin) -> dict[str, tuple[torch.Tensor, object]]:
    parameters, by_name = dict(twin.named_parameters()), {}
    for name, _ in cell.named_parameters():
        first, _, rest = name.partition(".")
        theirs = name
        if first == "backbone":
            layers = [at for at, layer in enumerate(twin.backbone) if hasattr(layer, "weight")]
            at, _, kind = rest.partition(".")
            theirs = f"backbone.{layers[int(at)]}.{kind}"
        elif first == "cells":
            at, _, kind = rest.partition(".")
            theirs = f"layer_{at}.{kind}"
        weight = parameters[theirs]
        by_name[name] = weight, 0 if name.endswith(("w_tau", "A")) else ...
    return by_name


def memory_weights(memory, twin):
    """Reorder the gates: ncps has (g, i, f, o) and adds a constant 1 to the bias of f."""
    size = memory.out_features
    order = np.concatenate([np.arange(size) + size * at for at in (1, 2, 0, 3)])
    with torch.no_grad():
        twin.input_map.weight.copy_(_torch(memory.weight_ih)[np.argsort(order)])
        twin.recurrent_map.weight.copy_(_torch(memory.weight_hh)[np.argsort(order)])
        bias = _torch(memory.bias_ih) + _torch(memory.bias_hh)
        bias[size : 2 * size] -= 1.0
        twin.input_map.bias.copy_(bias[np.argsort(order)])


def _torch(x) -> torch.Tensor:
    return torch.tensor(x.numpy())


def share(cell, weights) -> None:
    """Set the same random weights in both."""
    with torch.no_grad():
        for at, (name, parameter) in enumerate(cell.named_parameters()):
            noise = ops.random.uniform(parameter.shape, -0.2, 0.2, seed=at)
            parameter.assign(parameter + noise)
            theirs, where = weights[name]
            theirs[where] = _torch(parameter)


def compare(layer, cell, twin, weights, prefix: str = "cells.0.") -> None:
    """Compare values, states and gradients."""
    x, t = inputs(2, 5, FEATURES)
    expected, after = twin(t)
    y, state = layer.run(x)
    assert close(y, expected)
    assert close(state, after)
    stepwise, _ = layer.unroll(x)
    assert close(stepwise, expected)
    g = ops.random.normal(y.shape, seed=9)
    (expected * _torch(g)).sum().backward()
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * g).sum())()
    assert len(grads) == len(weights)
    for name, (theirs, where) in weights.items():
        assert close(grads[prefix + name], theirs.grad[where], 2e-5), name


@pytest.mark.parametrize("implicit", [True, False])
@pytest.mark.parametrize("kind", WIRINGS)
def test_ltc(kind: str, implicit: bool, backend: str) -> None:
    ours, theirs = WIRINGS[kind]
    layer = recurrent.LTC(FEATURES, ours(), implicit_param_constraints=implicit)
    twin = ncps.torch.LTC(FEATURES, theirs(), implicit_param_constraints=implicit)
    cell = layer.cells[0]
    weights = ltc_weights(cell, twin.rnn_cell)
    share(cell, weights)
    if not implicit:  # ours are clipped when used, theirs explicitly
        for name in ("w", "sensory_w", "cm", "gleak"):
            getattr(cell, name).assign(ops.abs(getattr(cell, name)) + 0.01)
            weights[name][0].data[weights[name][1]] = _torch(getattr(cell, name))
    compare(layer, cell, twin, weights)


@pytest.mark.parametrize("mapping", ["linear", "none"])
def test_ltc_mappings(mapping: str, backend: str) -> None:
    layer = recurrent.LTC(FEATURES, 4, input_mapping=mapping, output_mapping=mapping, ode_unfolds=2)
    theirs = None if mapping == "none" else mapping
    twin = ncps.torch.LTC(FEATURES, 4, input_mapping=theirs, output_mapping=theirs, ode_unfolds=2)
    weights = ltc_weights(layer.cells[0], twin.rnn_cell)
    share(layer.cells[0], weights)
    compare(layer, layer.cells[0], twin, weights)


@pytest.mark.parametrize("mode", ["default", "no_gate", "pure"])
@pytest.mark.parametrize(
    ("activation", "count"), [("lecun_tanh", 1), ("tanh", 1), ("silu", 2), ("gelu", 1), ("relu", 0)]
)
def test_cfc(mode: str, activation: str, count: int, backend: str) -> None:
    options = {"backbone_units": 7, "backbone_layers": count}
    layer = recurrent.CfC(FEATURES, 4, mode, activation, **options)
    twin = ncps.torch.CfC(FEATURES, 4, mode=mode, activation=activation, **options)
    weights = cfc_weights(layer.cells[0], twin.rnn_cell)
    share(layer.cells[0], weights)
    compare(layer, layer.cells[0], twin, weights)


@pytest.mark.parametrize("mode", ["default", "no_gate", "pure"])
def test_wired_cfc(mode: str, backend: str) -> None:
    layer = recurrent.WiredCfC(FEATURES, wirings.AutoNCP(12, 3), mode)
    twin = ncps.torch.CfC(FEATURES, ncps.wirings.AutoNCP(12, 3), mode=mode)
    weights = cfc_weights(layer.cells[0], twin.rnn_cell)
    share(layer.cells[0], weights)
    compare(layer, layer.cells[0], twin, weights)


MADE = {
    "ltc": (
        lambda **options: recurrent.LTC(FEATURES, wirings.AutoNCP(12, 3), **options),
        lambda **options: ncps.torch.LTC(FEATURES, ncps.wirings.AutoNCP(12, 3), **options),
        ltc_weights,
    ),
    "sparse ltc": (
        lambda **options: recurrent.LTC(FEATURES, WIRINGS["sparse"][0](), **options),
        lambda **options: ncps.torch.LTC(FEATURES, WIRINGS["sparse"][1](), **options),
        ltc_weights,
    ),
    "cfc": (
        lambda **options: recurrent.CfC(FEATURES, 4, **options),
        lambda **options: ncps.torch.CfC(FEATURES, 4, **options),
        cfc_weights,
    ),
    "pure": (
        lambda **options: recurrent.CfC(FEATURES, 4, mode="pure", **options),
        lambda **options: ncps.torch.CfC(FEATURES, 4, mode="pure", **options),
        cfc_weights,
    ),
    "wired": (
        lambda **options: recurrent.WiredCfC(FEATURES, wirings.AutoNCP(12, 3), **options),
        lambda **options: ncps.torch.CfC(FEATURES, ncps.wirings.AutoNCP(12, 3), **options),
        cfc_weights,
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_timespans(kind: str, backend: str) -> None:
    """Timespans of a batch are equivalent to those of its rows."""
    ours, theirs, find = MADE[kind]
    layer, twin = ours(), theirs()
    share(layer.cells[0], find(layer.cells[0], twin.rnn_cell))
    x, t = inputs(2, 5, FEATURES)
    spans, given = (np.random.default_rng(0).uniform(0.1, 2.0, (2, 5)).astype(np.float32),) * 2
    alone = [twin(t[row : row + 1], timespans=torch.tensor(given[row : row + 1])) for row in (0, 1)]
    y, state = layer.run(x, timespans=spans)
    assert close(y, torch.cat([part[0] for part in alone]))
    assert close(state, torch.cat([part[1] for part in alone]))
    shared, _ = layer.run(x[:1], timespans=spans[0])
    assert close(shared, alone[0][0])
    constant = np.full((2, 5), 0.5, np.float32)
    assert close(layer(x, timespans=0.5), layer(x, timespans=constant).numpy())
    assert close(layer(x, timespans=array(0.5)), layer(x, timespans=constant).numpy())
    assert close(layer(x[0], timespans=spans[0]), alone[0][0][0])


@pytest.mark.parametrize("kind", ["ltc", "sparse ltc"])
def test_timespan_zero_keeps_state(kind: str, backend: str) -> None:
    layer = MADE[kind][0]()
    x, _ = inputs(2, 4, FEATURES)
    before = ops.random.normal((2, layer.cells[0].widths), seed=2)
    _, after = layer.run(x, before, timespans=0.0)
    assert close(after, before.numpy())
    _, after = layer.run(x, before, timespans=np.zeros((2, 4), np.float32))
    assert close(after, before.numpy())


@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("kind", MADE)
def test_padding_does_not_change_state(kind: str, varied: bool, backend: str) -> None:
    layer = MADE[kind][0]()
    x, _ = inputs(2, 6, FEATURES)
    spans = np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(2, 6) if varied else 1.0
    mask = np.array([[True] * 4 + [False] * 2, [True, False, True, True, False, True]])
    y, state = layer.run(x, timespans=spans, mask=array(mask))
    for row in (0, 1):
        positions = np.flatnonzero(mask[row])
        real = array(x.numpy()[row, positions])
        expected, end = layer.run(real, timespans=spans[row, positions] if varied else 1.0)
        assert close(array(y.numpy()[row, positions]), expected.numpy())
        assert close(state[row], end.numpy())
    assert close(y[0, 4], y[0, 3].numpy(), 1e-6)
    assert close(y[0, 5], y[0, 3].numpy(), 1e-6)


@pytest.mark.parametrize("kind", MADE)
def test_mixed_memory(kind: str, backend: str) -> None:
    ours, theirs, find = MADE[kind]
    layer, twin = ours(mixed_memory=True), theirs(mixed_memory=True)
    cell = layer.cells[0]
    share(cell.cell, find(cell.cell, twin.rnn_cell))
    memory_weights(cell.memory, twin.lstm)
    x, t = inputs(2, 5, FEATURES)
    y, (h, c) = layer.run(x)
    expected, (theirs_h, theirs_c) = twin(t)
    assert close(y, expected)
    assert close(h, theirs_h)
    assert close(c, theirs_c)
    assert layer.state_size == 2 * cell.cell.state_size


@pytest.mark.parametrize("kind", ["cfc", "wired"])
def test_projection_and_last_output(kind: str, backend: str) -> None:
    ours, theirs, find = MADE[kind]
    options = {"proj_size": 2, "return_sequences": False}
    layer, twin = ours(**options), theirs(**options)
    share(layer.cells[0], find(layer.cells[0], twin.rnn_cell))
    with torch.no_grad():
        twin.fc.weight.copy_(_torch(layer.projection.weight))
        twin.fc.bias.copy_(_torch(layer.projection.bias))
    x, t = inputs(2, 5, FEATURES)
    assert close(layer(x), twin(t)[0])
    assert layer.out_features == 2


def test_layers_can_share_a_wiring(backend: str) -> None:
    wiring = wirings.AutoNCP(12, 3)
    first, second = recurrent.LTC(FEATURES, wiring), recurrent.LTC(FEATURES, wiring)
    stacked = recurrent.LTC(FEATURES, wiring, num_layers=2, bidirectional=True)
    assert not wiring.is_built
    assert first.cells[0].wiring.synapses() == second.cells[0].wiring.synapses()
    assert stacked.cells[1].wiring.input_dim == 6
    assert stacked(ops.ones((2, 4, FEATURES))).shape == (2, 4, 6)


def test_configs_contain_the_wiring(backend: str) -> None:
    layer = recurrent.LTC(FEATURES, wirings.NCP((6, 4), 5, 2, 3, 2, 4, 2))
    again = Config.from_yaml(layer.config.to_yaml()).create()
    again.load_state_dict(layer.state_dict())
    x, _ = inputs(2, 4, FEATURES)
    assert close(again(x), layer(x).numpy(), 1e-7)
    wired = recurrent.WiredCfC(FEATURES, {"type": "auto_ncp", "units": 12, "output_size": 3})
    assert wired.cells[0].sizes == [6, 3, 3]
    assert recurrent.LTC(FEATURES, 4).config.to_dict()["units"] == 4


def test_one_parameter_per_synapse() -> None:
    layer = recurrent.LTC(16, wirings.AutoNCP(64, 4))
    assert layer.num_parameters() == 4 * (504 + 288) + 3 * 64 + 2 * 16 + 2 * 4
    assert not any(parameter.decay for parameter in layer.parameters())


def test_functional_call_takes_other_parameters(backend: str) -> None:
    layer = recurrent.LTC(FEATURES, wirings.AutoNCP(12, 3))
    x, _ = inputs(2, 4, FEATURES)
    other = {"cells.0.sigma": layer.cells[0].sigma * 0.5}
    changed = nn.functional_call(layer, other, x)
    assert not close(changed, layer(x).numpy(), 1e-4)


def test_a_wiring_without_synapses(backend: str) -> None:
    layer = recurrent.LTC(FEATURES, wirings.CustomWiring(2, 1))
    x, _ = inputs(2, 4, FEATURES)
    y = layer(x)
    stepwise, _ = layer.unroll(x)
    assert y.shape == (2, 4, 1)
    assert close(y, stepwise.numpy())


@pytest.mark.parametrize("seed", range(5))
def test_stages_read_only_earlier_stages(seed: int) -> None:
    wiring = wirings.Random(40, 4, sparsity_level=0.97, random_seed=seed)
    edges = [(src, dest) for src, dest, _ in wiring.synapses()]
    by_name = stages(40, edges)
    assert sorted(neuron for stage in by_name for neuron in stage.neurons) == list(range(40))
    place = {neuron: at for at, stage in enumerate(by_name) for neuron in stage.neurons}
    for src, dest in edges:
        assert place[src] < place[dest] or (
            place[src] == place[dest] and by_name[place[src]].has_loops
        )


@pytest.mark.parametrize("kind", MADE)
def test_half_precision(kind: str) -> None:
    from ember_ml import use_backend

    with use_backend("torch"):
        layer = MADE[kind][0]()
        x, _ = inputs(2, 20, FEATURES)
        expected = layer(x).numpy()
        layer.to(dtype="bfloat16")
        y, state = layer.run(x.astype("bfloat16"))
        assert y.dtype == "bfloat16"
        assert state.dtype == "bfloat16"
        assert close(y.astype("float32"), expected, 0.05)
