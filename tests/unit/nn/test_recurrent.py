"""Tests of recurrent layers against torch.nn with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ember_ml import nn, ops
from ember_ml.nn.layers.sequence_mixing import recurrent
from ember_ml.nn.tensor import array

LAYERS = {
    "rnn": (recurrent.RNN, torch.nn.RNN),
    "lstm": (recurrent.LSTM, torch.nn.LSTM),
    "gru": (recurrent.GRU, torch.nn.GRU),
}
OPTIONS = [
    {},
    {"bias": False},
    {"num_layers": 2},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True},
]
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def close(ours, theirs, tolerance: float = 5e-6) -> bool:
    theirs = theirs.detach() if isinstance(theirs, torch.Tensor) else theirs
    return bool(np.abs(ours.numpy() - np.asarray(theirs)).max() < tolerance)


def named(layer, twin) -> dict[str, torch.Tensor]:
    """Return torch's weights by our parameter names."""
    by_name = {}
    for cells, ending in (("cells", ""), ("backward_cells", "_reverse")):
        for at in range(len(getattr(layer, cells))):
            for name in NAMES:
                weight = getattr(twin, f"{name}_l{at}{ending}", None)
                if weight is not None:
                    by_name[f"{cells}.{at}.{name}"] = weight
    return by_name


def twins(kind: str, **options):
    ours, theirs = LAYERS[kind]
    layer, twin = ours(3, 4, **options), theirs(3, 4, batch_first=True, **options)
    weights = named(layer, twin)
    assert set(weights) == {name for name, _ in layer.named_parameters()}
    with torch.no_grad():
        for at, (name, parameter) in enumerate(layer.named_parameters()):
            parameter.assign(ops.random.normal(parameter.shape, 0.0, 0.5, seed=at))
            weights[name].copy_(torch.tensor(parameter.numpy()))
    return layer, twin, weights


def inputs(*shape: int, seed: int = 0):
    x = ops.random.normal(shape, seed=seed)
    return x, torch.tensor(x.numpy(), requires_grad=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_values_and_gradients(kind: str, options, backend: str) -> None:
    layer, twin, weights = twins(kind, **options)
    x, t = inputs(2, 5, 3)
    expected = twin(t)[0]
    y = layer(x)
    assert close(y, expected)
    g = ops.random.normal(y.shape, seed=9)
    (expected * torch.tensor(g.numpy())).sum().backward()
    _, grads = nn.value_and_grad(layer, lambda: (layer(x) * g).sum())()
    for name, grad in grads.items():
        assert close(grad, weights[name].grad, 1e-5), name


@pytest.mark.parametrize("kind", LAYERS)
def test_sequence_in_parts(kind: str, backend: str) -> None:
    layer, twin, _ = twins(kind, num_layers=2)
    x, t = inputs(2, 7, 3)
    expected, after = twin(t)
    first, state = layer.run(x[:, :3])
    second, state = layer.run(x[:, 3:], state)
    assert close(ops.concat([first, second], axis=1), expected)
    hidden = [part[0] if kind == "lstm" else part for part in state]
    assert close(ops.stack(hidden), after[0] if kind == "lstm" else after)
    stepwise, _ = layer.unroll(x)
    assert close(stepwise, expected)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_padding(kind: str, bidirectional: bool, backend: str) -> None:
    layer, twin, _ = twins(kind, bidirectional=bidirectional)
    x, t = inputs(3, 6, 3)
    lengths = [6, 2, 4]
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        t, lengths, batch_first=True, enforce_sorted=False
    )
    expected, after = twin(packed)
    expected = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)[0]
    mask = array([[at < length for at in range(6)] for length in lengths])
    y, state = layer.run(x, mask=mask)
    real = ops.where(mask[:, :, None], y, 0.0)
    assert close(real, expected)
    after = after[0] if kind == "lstm" else after
    ends = state if bidirectional else [state]
    assert close(ops.stack([end[0] if kind == "lstm" else end for end in ends]), after)
    if not bidirectional:
        assert (y[1, 5] == y[1, 1]).all()
        layer.return_sequences = False
        assert close(layer(x, mask), after[0])


def test_last_output_of_bidirectional_layer(backend: str) -> None:
    layer, twin, _ = twins("gru", bidirectional=True)
    layer.return_sequences = False
    x, t = inputs(2, 5, 3)
    after = twin(t)[1]
    assert close(layer(x), torch.cat([after[0], after[1]], 1))


@pytest.mark.parametrize("kind", LAYERS)
def test_cells(kind: str, backend: str) -> None:
    layer, _, weights = twins(kind)
    theirs = {"rnn": torch.nn.RNNCell, "lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell}
    twin = theirs[kind](3, 4)
    twin.load_state_dict({name.rpartition(".")[2]: w for name, w in weights.items()})
    x, t = inputs(2, 3)
    h, th = inputs(2, 4, seed=1)
    state = (h, h * 2) if kind == "lstm" else h
    given = (th, th * 2) if kind == "lstm" else th
    y, new = layer.cells[0](x, state)
    expected = twin(t, given)
    assert close(y, expected[0] if kind == "lstm" else expected)
    if kind == "lstm":
        assert close(new[1], expected[1])


def test_second_derivatives_of_the_kernels() -> None:
    """torch's kernels have no second derivatives; gradient penalties use the step-by-step form."""
    from ember_ml import GradientTape, use_backend

    for kind in ("lstm", "gru"):
        grads = []
        for backend in ("torch", "numpy"):
            with use_backend(backend):
                layer, _, _ = twins(kind)
                x, _ = inputs(2, 4, 3)
                with GradientTape() as outer:
                    with GradientTape() as inner:
                        inner.watch(x)
                        y = (layer(x) ** 2).sum()
                    penalty = (inner.gradient(y, x) ** 2).sum()
                grads.append(outer.gradient(penalty, layer.cells[0].weight_hh).numpy())
        np.testing.assert_allclose(*grads, rtol=1e-4, atol=1e-5)


def test_min_gru(backend: str) -> None:
    layer = recurrent.MinGRU(3, 4)
    x, _ = inputs(2, 40, 3)
    mask = np.random.default_rng(0).random((2, 40)) < 0.7
    weight, h = layer.cells[0].weight.numpy().astype(np.float64), np.ones((2, 4))
    expected = []
    for at in range(40):
        gate, value = np.split(x.numpy()[:, at] @ weight.T, 2, axis=1)
        z = 1 / (1 + np.exp(-gate))
        h = np.where(mask[:, at, None], (1 - z) * h + z * value, h)
        expected.append(h)
    y, state = layer.run(x, ops.ones((2, 4)), mask=array(mask))
    assert close(y, np.stack(expected, 1))
    assert close(state, h)


def test_unbatched_shapes(backend: str) -> None:
    x, _ = inputs(2, 5, 3)
    for layer in (recurrent.LSTM(3, 4), recurrent.GRU(3), recurrent.RNN(3, activation="relu")):
        y, state = layer.run(x)
        alone, one = layer.run(x[0])
        assert close(alone, y.numpy()[0])
        first = [part[0] for part in state] if isinstance(state, tuple) else [state[0]]
        ones = one if isinstance(one, tuple) else [one]
        assert all(close(a, b.numpy()) for a, b in zip(ones, first, strict=True))
        continued, _ = layer.run(x[0], one)
        assert continued.shape == alone.shape
        assert layer(x[:, :0]).shape == (2, 0, y.shape[2])
        assert layer(x[:, :1]).shape == (2, 1, y.shape[2])
    assert recurrent.LSTM(3, 4).state_size == 8
    assert recurrent.GRU(3, 4, num_layers=2, bidirectional=True).state_size == 16


class Leaky(recurrent.RecurrentCell):
    def __init__(self, features: int) -> None:
        self.in_features = self.out_features = self.widths = features
        self.decay = nn.Parameter(ops.full((features,), 0.5))

    def step(self, x, state, timespan=1.0):
        state = self.decay**timespan * state + x
        return state, state


def test_custom_cell(backend: str) -> None:
    layer = recurrent.Recurrent(Leaky(2), Leaky(2))
    x, _ = inputs(2, 3, 2)
    spans = np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 1.0]], np.float32)
    mask = np.array([[True, True, True], [True, True, False]])
    y = layer(x, array(mask), timespans=spans).numpy()
    values = x.numpy()
    for row in range(2):
        for order, half in ((range(3), y[row, :, :2]), (range(2, -1, -1), y[row, :, 2:])):
            state = np.zeros(2)
            for at in order:
                if mask[row, at]:
                    state = 0.5 ** spans[row, at] * state + values[row, at]
                assert np.allclose(half[at], state, atol=1e-6)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: recurrent.LSTM(3)(ops.ones((2, 5, 4))),
            r"LSTM: expected an input of shape \(batch, time, 3\)",
        ),
        (lambda: recurrent.LSTM(3)(ops.ones((2, 5, 3)), ops.ones((2, 4))), "a mask of"),
        (
            lambda: recurrent.LSTM(3).run(ops.ones((2, 5, 3)), ops.ones((2, 3))),
            r"LSTM: expected a state with the shapes \[\(2, 3\), \(2, 3\)\], got \[\(2, 3\)\]",
        ),
        (
            lambda: recurrent.GRU(3, num_layers=2).run(ops.ones((2, 5, 3)), ()),
            "each of the 2 cells, got 0",
        ),
        (lambda: recurrent.CfC(3)(ops.ones((2, 5, 3)), timespans=[1.0]), "expected timespans of"),
        (
            lambda: recurrent.GRUCell(3, 4)(ops.ones((2, 4))),
            r"GRUCell: expected an input of shape \(batch, 3\)",
        ),
        (lambda: recurrent.CfC(3, mode="fast"), "mode"),
        (lambda: recurrent.LTC(3, units=0), "at least 1"),
        (lambda: recurrent.LTC(3, units="everything"), "must be a wiring"),
        (
            lambda: recurrent.RNN(3, return_sequences=False)(ops.ones((2, 0, 3))),
            "requires at least one position",
        ),
    ],
)
def test_errors_name_the_layer(run, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run()


def test_bidirectional_layer_has_no_step() -> None:
    layer = recurrent.GRU(3, bidirectional=True)
    assert not layer.is_causal
    with pytest.raises(
        NotImplementedError, match="GRU: a bidirectional layer needs the whole sequence"
    ):
        layer.step(ops.ones((2, 3)), layer.initial_state(2))
