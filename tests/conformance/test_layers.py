"""Properties of every registered layer, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import nn, ops, registry
from ember_ml._core import tree
from ember_ml._core.errors import ShapeError
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn import states
from ember_ml.nn.layers.sequence_mixing.attention.cache import KVCache
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.layers.sequence_mixing.fft_conv import FFTConv
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase
from ember_ml.nn.layers.sequence_mixing.recurrent import Recurrent
from ember_ml.nn.tensor import Tensor, array
from ember_ml.registry import Entry
from tests.backends import has_dtype, other_than
from tests.examples_of import config_of, inputs_of
from tests.robustness.scale import compile_each

LAYERS = registry.available("layers")
MIXERS = [entry for entry in LAYERS if issubclass(entry.target, SequenceMixer)]
STEPPED = [
    entry for entry in MIXERS if entry.target.initial_state is not SequenceMixer.initial_state
]
ILL_CONDITIONED = {
    "layers/mh_linear_attention": "features of both signs: a denominator comes close to zero",
    "layers/spiking": "a rounded current can cross the threshold",
    "layers/spiking_mixer": "a rounded current can cross the threshold",
}
"""Layers in which rounding the input can change some outputs by more than a tenth, and why."""

of_each_layer = pytest.mark.parametrize("entry", LAYERS, ids=lambda entry: entry.name)
of_each_mixer = pytest.mark.parametrize("entry", MIXERS, ids=lambda entry: entry.name)
of_each_stepped = pytest.mark.parametrize("entry", STEPPED, ids=lambda entry: entry.name)


def make(entry: Entry) -> nn.Module:
    """Return a layer in inference mode, with the same parameters on every backend."""
    ops.random.set_seed(7)
    layer = config_of(entry).create().eval()
    for at, parameter in enumerate(layer.parameters()):  # zeros hide mistakes
        if parameter.dtype.kind == "float":
            noise = ops.random.normal(parameter.shape, 0.0, 0.1, seed=at)
            parameter.assign(parameter + noise)
    return layer


def sequence(layer: SequenceMixer, batch: int, length: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, length, layer.features)).astype(np.float32)


def close(a, b, tolerance: float = 1e-4) -> bool:
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance))


def caches_in(state) -> list[KVCache]:
    """Return the KV caches of a state."""
    if isinstance(state, KVCache):
        return [state]
    parts = state if isinstance(state, (list, tuple)) else ()
    return [cache for part in parts for cache in caches_in(part)]


@of_each_layer
def test_values_and_gradients_agree_across_backends(entry: Entry) -> None:
    results = []
    for backend in available():
        with use_backend(backend):
            layer = make(entry)
            x = array(inputs_of(layer))
            out = layer(x)
            weights = array(np.cos(np.arange(out.size, dtype=np.float32)).reshape(out.shape))
            assert out.dtype.name == "float32"
            assert out.backend == backend
            grads = {}
            if layer.parameters():
                _, grads = nn.value_and_grad(layer, lambda: (layer(x) * weights).sum())()  # noqa: B023
            results.append((out.numpy(), {name: g.numpy() for name, g in grads.items()}))
    (out, grads), *others = results
    for other_out, other_grads in others:
        assert close(out, other_out)
        for name, grad in grads.items():
            scale = max(1.0, float(np.abs(grad).max()))
            assert close(grad / scale, other_grads[name] / scale, 5e-4), name


@of_each_layer
def test_config_and_state_make_the_same_layer(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x = array(inputs_of(layer))
    twin = Config.from_yaml(layer.config.to_yaml()).create().eval()
    twin.load_state_dict({name: value.numpy() for name, value in layer.state_dict().items()})
    assert close(layer(x).numpy(), twin(x).numpy(), 1e-6)
    assert repr(twin) == repr(layer)


@compile_each(LAYERS)
def test_it_compiles(entry: Entry, backend: str, trace) -> None:
    layer = make(entry)
    x = array(inputs_of(layer))
    compiled = trace(lambda x: layer(x))
    assert close(compiled(x).numpy(), layer(x).numpy())


@of_each_layer
def test_bfloat16(entry: Entry, backend: str) -> None:
    layer = make(entry)
    if not has_dtype(backend, "bfloat16"):
        if not layer.parameters():
            pytest.skip("no parameters to convert")
        with pytest.raises(TypeError, match="bfloat16"):
            layer.to(dtype="bfloat16")
        return
    x = array(inputs_of(layer))
    x = x.astype("bfloat16") if x.dtype.kind == "float" else x
    out = layer.to(dtype="bfloat16")(x)
    assert out.dtype.name == "bfloat16"
    # the same rounded values: only the arithmetic differs
    x = x.astype("float32") if x.dtype.kind == "float" else x
    expected = layer.to(dtype="float32")(x).numpy()
    scale = max(1.0, float(np.abs(expected).max()))
    error = np.abs(out.astype("float32").numpy() - expected)
    worst = np.median(error) if entry.name in ILL_CONDITIONED else error.max()
    assert worst < (0.005 if entry.name in ILL_CONDITIONED else 0.1) * scale


@of_each_mixer
@pytest.mark.parametrize(("batch", "length"), [(2, 1), (1, 7), (3, 33)])
def test_shapes(entry: Entry, batch: int, length: int, backend: str) -> None:
    layer = make(entry)
    out = layer(array(sequence(layer, batch, length)))
    assert out.shape[:2] == (batch, length)
    assert np.isfinite(out.numpy()).all()


@of_each_mixer
def test_an_empty_sequence_gives_an_empty_one(entry: Entry, backend: str) -> None:
    layer = make(entry)
    assert layer(array(sequence(layer, 2, 0))).shape[:2] == (2, 0)


def test_docstrings_say_why_there_are_no_steps() -> None:
    without = [entry for entry in MIXERS if entry not in STEPPED]
    silent = [entry.name for entry in without if "step" not in (entry.target.__doc__ or "")]
    assert not silent


@of_each_stepped
def test_steps_equal_the_whole(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x = array(sequence(layer, 2, 19))
    out, state = layer.unroll(x[:, :11])
    rest, _ = layer.unroll(x[:, 11:], state)  # continue from the state
    whole = layer(x).numpy()
    assert close(np.concatenate([out.numpy(), rest.numpy()], axis=1), whole, 2e-4)


def lengths_mask(lengths: list[int], start: int, size: int) -> np.ndarray:
    """Return the padding mask of positions from `start` on, for sequences of these lengths."""
    return np.arange(start, start + size) < np.array(lengths)[:, None]


@of_each_stepped
def test_parts_of_padded_sequences_equal_each_alone(entry: Entry, backend: str) -> None:
    layer = make(entry)
    lengths = [20, 13, 5]
    x, after = sequence(layer, 3, 20), sequence(layer, 3, 1, seed=1)
    joined = [np.concatenate([x[at, :n], after[at]])[None] for at, n in enumerate(lengths)]
    alone = [layer(array(each)).numpy()[0] for each in joined]
    for size in (1, 7, 20):
        state, outputs = layer.initial_state(3), []
        for start in range(0, 20, size):
            part = array(x[:, start : start + size])
            mask = array(lengths_mask(lengths, start, part.shape[1]))
            y, state = layer(part, mask, state=state)
            outputs.append(y.numpy())
        whole = np.concatenate(outputs, axis=1)
        last, _ = layer.step(array(after[:, 0]), state)
        for at, n in enumerate(lengths):
            assert close(whole[at, :n], alone[at][:n], 3e-4)
            assert close(last.numpy()[at], alone[at][n], 3e-4)


@of_each_stepped
def test_rows_of_states_are_taken_joined_and_extended_in_place(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x, after = sequence(layer, 3, 40), sequence(layer, 3, 4, seed=1)
    mask = array(lengths_mask([40, 33, 5], 0, 40))
    _, state = layer(array(x), mask, state=layer.initial_state(3))
    _, other = layer(array(x[:, :9]), state=layer.initial_state(3))
    expected, _ = layer.unroll(array(after), state)
    expected_other, _ = layer.unroll(array(after), other)
    joined = states.join([states.take_rows(state, [2, 0]), states.take_rows(other, [1])])
    rows = states.reserve(joined)
    inputs = after[[2, 0, 1]]
    y, _ = layer.unroll(array(inputs), rows)
    again, _ = layer.unroll(array(inputs), rows)  # an earlier state stays valid
    wanted = [expected.numpy()[2], expected.numpy()[0], expected_other.numpy()[1]]
    assert close(y.numpy(), wanted, 3e-4)
    assert close(again.numpy(), y.numpy(), 1e-6)
    with pytest.raises(TypeError, match="indices must be integers"):
        states.take_rows(state, [0.5])
    with pytest.raises(ValueError, match=r"states\.join: the states must be of the same module"):
        states.join([state, {}])
    short = states.trim(states.take_rows(state, [2]), 5)
    assert all(cache.slots == 5 for cache in caches_in(short))
    y, _ = layer.unroll(array(after[2:]), states.reserve(short))
    assert close(y.numpy(), expected.numpy()[2:], 3e-4)


@of_each_stepped
def test_a_state_of_another_batch_size_is_refused(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x, rest = array(sequence(layer, 3, 4)), array(sequence(layer, 3, 2, seed=1))
    _, before = layer(x, state=layer.initial_state(3))
    expected, _ = layer(rest, state=before)
    state = states.reserve(before)
    name = type(layer).__name__
    for batch in (1, 2):
        with pytest.raises(ShapeError, match=f"{name}: .*{batch}"):
            layer(rest[:batch], state=state)
        with pytest.raises(ShapeError, match=f"{name}: .*{batch}"):
            layer.step(x[:batch, 0], state)
        with pytest.raises(ShapeError, match=f"{name}: .*{batch}"):
            layer.step(x[:, 0], layer.initial_state(batch))
    y, _ = layer(rest, state=state)  # the state stays valid
    assert close(y.numpy(), expected.numpy(), 1e-5)


@of_each_stepped
def test_a_step_without_a_state_is_refused_except_by_recurrent_layers(
    entry: Entry, on_numpy: None
) -> None:
    layer = make(entry).eval()
    x = array(sequence(layer, 2, 1)[:, 0])
    if isinstance(layer, Recurrent):
        assert close(layer.step(x, None)[0], layer.step(x, layer.initial_state(2))[0])
        return
    with pytest.raises(TypeError, match=rf"{type(layer).__name__}.step: state is None; pass init"):
        layer.step(x, None)


@of_each_stepped
def test_a_batch_may_be_empty(entry: Entry, backend: str) -> None:
    layer = make(entry)
    y, state = layer(array(sequence(layer, 0, 3)), state=layer.initial_state(0))
    assert y.shape == (0, 3, layer.features)
    last, _ = layer.step(array(sequence(layer, 0, 1)[:, 0]), state)
    assert last.shape == (0, layer.features)


@of_each_stepped
def test_steps_of_constant_shape_equal_others(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x, after = sequence(layer, 2, 9), sequence(layer, 2, 12, seed=1)
    _, state = layer(array(x), array(lengths_mask([9, 4], 0, 9)), state=layer.initial_state(2))
    expected, _ = layer.unroll(array(after), state)
    try:
        fixed = states.fix(state, 32)
    except NotImplementedError:
        assert issubclass(entry.target, (FFTConv, HyenaBase))
        return
    shapes = [part.shape for part in tree.leaves_of(fixed)]
    y, fixed = layer.unroll(array(after), fixed)
    assert [part.shape for part in tree.leaves_of(fixed)] == shapes
    assert close(y.numpy(), expected.numpy(), 3e-4)


@of_each_stepped
def test_gradients_flow_through_the_state(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x = array(sequence(layer, 2, 9))

    def in_parts() -> Tensor:
        y, state = layer(x[:, :4], state=layer.initial_state(2))
        rest, _ = layer(x[:, 4:], state=state)
        return (ops.concat([y, rest], axis=1) ** 2).sum()

    _, grads = nn.value_and_grad(layer, in_parts)()
    _, expected = nn.value_and_grad(layer, lambda: (layer(x) ** 2).sum())()
    for name, grad in expected.items():
        scale = max(1.0, float(np.abs(grad.numpy()).max()))
        assert close(grads[name].numpy() / scale, grad.numpy() / scale, 1e-3), name


@pytest.mark.parametrize(
    "entry",
    [entry for entry in STEPPED if not issubclass(entry.target, Recurrent)],  # skips any padding
    ids=lambda entry: entry.name,
)
def test_padding_before_the_end_is_refused_with_a_state(entry: Entry) -> None:
    layer = make(entry)
    x, mask = array(sequence(layer, 1, 3)), array([[True, False, True]])
    with pytest.raises(ValueError, match=f"{type(layer).__name__}: with a state, the mask"):
        layer(x, mask, state=layer.initial_state(1))


@of_each_stepped
def test_a_state_is_where_the_layer_is(entry: Entry, backend: str) -> None:
    layer = make(entry)
    with use_backend(other_than(backend)):
        state = layer.initial_state(2)
    assert {part.backend for part in tree.leaves_of(state)} <= {backend}


@of_each_stepped
def test_the_state_has_the_reported_size(entry: Entry) -> None:
    layer = make(entry)
    state, x = layer.initial_state(3), array(sequence(layer, 3, 1))[:, 0]
    is_convolution = issubclass(entry.target, (FFTConv, HyenaBase))
    for seen in range(1, 41):
        _, state = layer.step(x, state)
        reported = 3 * (layer.state_size + seen * layer.state_per_token)
        parts = [part for part in tree.leaves_of(state) if part.dtype.kind != "int"]
        parts = [part for part in parts if part.shape[0] == 3]  # without the filters
        size = sum(part.size * (1 + (part.dtype.kind == "complex")) for part in parts)
        assert size <= (3 if is_convolution else 1) * reported  # it stores sums besides inputs
    assert is_convolution or size == reported


@of_each_mixer
def test_the_future_does_not_matter(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x = sequence(layer, 2, 21)
    changed = x.copy()
    changed[:, 13:] += 1.0
    before, after = layer(array(x)).numpy(), layer(array(changed)).numpy()
    if layer.is_causal:
        assert close(before[:, :13], after[:, :13], 1e-5)
    assert np.abs(before[:, 13:] - after[:, 13:]).max() > 1e-4


@of_each_mixer
def test_padding_does_not_matter(entry: Entry, backend: str) -> None:
    layer = make(entry)
    x = sequence(layer, 2, 12)
    mask = np.ones((2, 12), bool)
    mask[0, 8:] = False
    x[0, 8:] = 3.0
    padded = layer(array(x), mask=array(mask)).numpy()
    alone = layer(array(x[:1, :8])).numpy()
    assert close(padded[:1, :8], alone, 2e-4)
    with pytest.raises(ValueError, match=type(layer).__name__):
        layer(array(x), mask=array(mask[:, :5]))


@of_each_mixer
def test_wrong_inputs_name_the_layer(entry: Entry, backend: str) -> None:
    layer = make(entry)
    for shape in [(2, 5, layer.features + 1), (layer.features,)]:
        with pytest.raises(ValueError, match=type(layer).__name__):
            layer(ops.ones(shape))
