"""Quantized layers and models, on every backend."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import ember_ml
from ember_ml import GradientTape, nn, ops, registry
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.backend import use_backend
from ember_ml.nn import checkpoint
from ember_ml.nn.layers import Dense, Embedding, QuantizedDense, QuantizedEmbedding
from ember_ml.nn.layers.channel_mixing.quantized import Packed, pack
from ember_ml.nn.models import convert
from ember_ml.nn.quantization import quantize
from ember_ml.nn.tensor import array
from ember_ml.registry import Entry
from ember_ml.training import Trainer
from tests.backends import has_dtype, other_than
from tests.examples_of import config_of, inputs_of


def matrix(rows: int, features: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, features)).astype(np.float32)


def dense(weight: np.ndarray, **options: object) -> Dense:
    layer = Dense(weight.shape[1], weight.shape[0], **options)
    layer.weight.assign(weight)
    return layer


def by_hand(weight: np.ndarray, bits: int, group_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the integers and the weights that they stand for, group by group."""
    integers = np.zeros(weight.shape, np.int64)
    values = np.zeros(weight.shape)
    for row in range(weight.shape[0]):
        for at in range(0, weight.shape[1], group_size):
            group = weight[row, at : at + group_size]
            low = np.float32(0.0) if bits == 8 else group.min()
            span = np.abs(group).max() if bits == 8 else group.max() - low
            scale = np.float32(span) / np.float32(127 if bits == 8 else 15)
            q = np.rint((group - low) / (scale or 1.0))
            integers[row, at : at + group_size] = q
            values[row, at : at + group_size] = q * scale + low
    return integers, values


SIZES = [(5, 64, 64), (3, 100, 32), (4, 63, 16), (2, 33, 64), (3, 17, 5), (1, 16, 1)]


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(("rows", "features", "group_size"), SIZES)
def test_the_values_are_those_of_plain_arithmetic(
    bits: int, rows: int, features: int, group_size: int, backend: str
) -> None:
    weight = matrix(rows, features)
    layer = QuantizedDense(features, rows, bits=bits, group_size=group_size)
    layer.load_weight(array(weight))
    _, values = by_hand(weight, bits, group_size)
    np.testing.assert_allclose(layer.weight.numpy(), values, rtol=1e-5, atol=1e-5)
    x = matrix(6, features, 1)
    np.testing.assert_allclose(layer(array(x)).numpy(), x @ values.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("features", [16, 17])
def test_four_bits_are_packed_in_pairs(features: int, backend: str) -> None:
    weight = matrix(3, features)
    packed, _, _ = pack(array(weight), 4, 8)
    integers, _ = by_hand(weight, 4, 8)
    integers = np.pad(integers, ((0, 0), (0, features % 2)))
    expected = integers[:, ::2] + 16 * integers[:, 1::2]
    assert packed.dtype.name == "uint8"
    assert packed.tolist() == expected.tolist()


def test_every_byte_is_unpacked(backend: str) -> None:
    packed = array(np.arange(256, dtype=np.uint8)[None])
    values = ops.dequantize(packed, ops.ones((1, 8))).numpy()
    expected = [half for byte in range(256) for half in (byte % 16, byte // 16)]
    assert values.tolist() == [expected]


def test_the_integers_are_the_same_on_every_backend(backend: str) -> None:
    weight = matrix(16, 96)
    for bits in (8, 4):
        here = pack(array(weight), bits, 32)
        with use_backend(other_than(backend)):
            there = pack(array(weight), bits, 32)
        for one, other in zip(here, there, strict=True):
            assert (one is None) == (other is None)
            assert one is None or one.tolist() == other.tolist()


@pytest.mark.parametrize("bits", [8, 4])
def test_zeros_constants_and_outliers(bits: int, backend: str) -> None:
    weight = matrix(5, 64)
    weight[0] = 0.0
    weight[1] = 3.5
    weight[2, 7] = 1e30
    weight[3, ::2], weight[3, 1::2] = 1.5e38, -1.5e38
    weight[4] = 1e-42
    small, _ = quantize(dense(weight), bits=bits, group_size=32)
    values = small.weight.numpy()
    assert values[0].tolist() == [0.0] * 64
    np.testing.assert_allclose(values[1], 3.5, rtol=1e-6)
    np.testing.assert_allclose(values[2, 7], 1e30, rtol=1e-5)
    np.testing.assert_allclose(values[2, 32:], weight[2, 32:], atol=0.2)  # the other group
    np.testing.assert_allclose(values[3], weight[3], rtol=1e-5)
    np.testing.assert_allclose(values[4], 1e-42, atol=2e-42)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_weights_are_named(value: float, backend: str) -> None:
    model = nn.Sequential(Dense(32, 32), Dense(32, 32))
    weight = matrix(32, 32)
    weight[3, 5] = value
    model[1].weight.assign(weight)
    with pytest.raises(ValueError, match=r"quantize: 1\.weight contains NaN or infinite values"):
        quantize(model)
    small, report = quantize(model, skip=["1"])
    assert report.kept == {"1": "skip"}
    assert type(small[1]) is Dense


LANGUAGE = "attention swiglu hyena mamba cfc rwkv5_time_mixer"


def language_model(tie_weights: bool = False) -> nn.models.LanguageModel:
    ops.random.set_seed(3)
    return nn.models.LanguageModel(LANGUAGE, 11, 32, tie_weights=tie_weights).eval()


TOKENS = np.arange(14).reshape(2, 7) % 11


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("tie_weights", [False, True])
def test_checkpoints_move_between_backends(
    bits: int, tie_weights: bool, backend: str, tmp_path
) -> None:
    small, _ = quantize(language_model(tie_weights), bits, 32, embeddings=True)
    expected = small(array(TOKENS)).numpy()
    ember_ml.save(small, tmp_path / "model")
    with use_backend(other_than(backend)):
        loaded = ember_ml.load(tmp_path / "model")
        again = loaded(array(TOKENS)).numpy()
    np.testing.assert_allclose(again, expected, rtol=1e-4, atol=1e-4)
    assert repr(loaded) == repr(small)
    assert loaded.num_bytes() == small.num_bytes()
    for name, value in small.state_dict().items():
        assert loaded.state_dict()[name].tolist() == value.tolist(), name
    ember_ml.save(loaded, tmp_path / "again")  # a loaded model is saved as a quantized one
    assert repr(ember_ml.load(tmp_path / "again")) == repr(small)


def test_a_model_inside_another_stays_quantized(backend: str, tmp_path) -> None:
    inner, _ = quantize(nn.Sequential(Dense(32, 32), Dense(32, 4)))
    outer = nn.Sequential(Dense(8, 32), inner)
    ember_ml.save(outer, tmp_path / "model")
    assert repr(ember_ml.load(tmp_path / "model")) == repr(outer)


def test_packed_files_may_describe_larger_models(tmp_path, on_numpy: None, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "SPARE", 0)  # the limit depends on the file alone
    for dtype in ("float32", "float16"):
        model = nn.layers.MLP(512, [512], 512).to(dtype=dtype)
        small, _ = quantize(model, bits=4)
        ember_ml.save(small, tmp_path / "model")
        assert ember_ml.load(tmp_path / "model").num_bytes() == small.num_bytes()


def test_layers_without_a_config_are_loaded_into_a_model(tmp_path, on_numpy: None) -> None:
    small, _ = quantize(nn.Sequential(Dense(32, 32, activation=lambda x: x * 2.0)))
    ember_ml.save(small, tmp_path / "model")
    with pytest.raises(ValueError, match="pass it as into="):
        ember_ml.load(tmp_path / "model")
    other, _ = quantize(nn.Sequential(Dense(32, 32, activation=lambda x: x * 2.0)))
    ember_ml.load(tmp_path / "model", into=other)
    x = ops.ones((2, 32))
    assert other(x).tolist() == small(x).tolist()


def test_damaged_records_of_replaced_layers(tmp_path, on_numpy: None) -> None:
    small, _ = quantize(nn.Sequential(Dense(32, 32)))
    ember_ml.save(small, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    text = config.read_text()
    (tmp_path / "model" / "checksums.json").unlink()
    for old, new, message in (
        ('"0": {', '"7": {', "Sequential has no module '7' to replace"),
        ('"layers/quantized_dense"', '"layers/quantised"', "quantised"),
        ('"bits": 8', '"bits": 3', "bits"),
        (
            '"in_features": 32,\n      "out_features"',
            '"in_features": 48,\n      "out_features"',
            "48",
        ),
    ):
        assert old in text, text
        config.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=message):
            ember_ml.load(tmp_path / "model")


def test_numbers_of_parameters_and_bytes(backend: str) -> None:
    model = nn.Sequential(Dense(128, 64), Dense(64, 16, bias=False))
    small, report = quantize(model)
    weights, biases, groups = 128 * 64 + 64 * 16, 64, 2 * 64 + 16
    assert small.num_parameters() == model.num_parameters() == weights + biases
    assert small.num_parameters(trainable=True) == biases
    assert small.num_parameters(trainable=False) == weights
    assert small.num_bytes() == report.bytes_after == weights + 4 * (biases + groups)
    assert model.num_bytes() == report.bytes_before == 4 * (weights + biases)
    assert f"{weights + biases:,} parameters, {weights:,} of them frozen" in str(small.summary())
    assert f"{small.num_bytes():,} bytes" in str(small.summary())
    smaller, _ = quantize(model, bits=4)
    assert smaller.num_bytes() == weights // 2 + 4 * (biases + 2 * groups)
    text = str(report)
    assert "2 layers with 8-bit weights in groups of 64" in text
    assert f"{report.bytes_before:,} -> {report.bytes_after:,} bytes" in text


def test_the_given_model_is_not_changed(backend: str) -> None:
    model = language_model()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    small, _ = quantize(model, embeddings=True)
    for parameter in small.parameters():
        parameter.assign(parameter * 0.0)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert not any(isinstance(module, Packed) for module in model.modules())


def test_what_is_kept_is_reported(backend: str) -> None:
    class Wide(Dense):
        """A Dense layer that computes something else."""

    tied = nn.Sequential(Dense(32, 32), Dense(32, 32))
    tied[1].weight = tied[0].weight
    hooked = Dense(32, 32)
    hooked.register_forward_hook(lambda module, args, output: None)
    again, _ = quantize(Dense(32, 32))
    parts = [Wide(32, 32), tied, hooked, again, Dense(4, 32), Embedding(3, 32)]
    _, report = quantize(nn.ModuleList(parts))
    assert report.kept == {
        "0": "Wide is a subclass of Dense",
        "1.0": "another module uses its weight",
        "1.1": "another module uses its weight",
        "2": "it has hooks",
        "3": "already quantized",
        "4": "fewer than 16 features",
        "5": "embeddings=False",
    }
    assert report.quantized == ()
    assert "not quantized: 2 (it has hooks)" in str(report)


def test_a_module_in_two_places_is_quantized_once(backend: str) -> None:
    shared = Dense(32, 32)
    small, report = quantize(nn.Sequential(shared, shared))
    assert small[0] is small[1]
    assert isinstance(small[0], QuantizedDense)
    assert report.quantized == ("0",)


def test_activations_and_biases_are_kept(backend: str) -> None:
    layer = Dense(32, 8, activation="prelu")
    layer.activation.weight.assign(0.7 + ops.zeros_like(layer.activation.weight))
    layer.bias.assign(ops.ones(8))
    layer.bias.trainable = False
    small, _ = quantize(layer)
    x = array(matrix(4, 32))
    np.testing.assert_allclose(small(x).numpy(), layer(x).numpy(), atol=0.1)
    assert small.bias.tolist() == [1.0] * 8
    assert not small.bias.trainable
    assert small.activation.weight is not layer.activation.weight


def test_padding_stays_zero(backend: str) -> None:
    small, _ = quantize(Embedding(5, 32, padding_index=2), bits=4, embeddings=True)
    assert isinstance(small, QuantizedEmbedding)
    assert small(array([1, 2])).numpy()[1].tolist() == [0.0] * 32
    with pytest.raises(ValueError, match=r"QuantizedEmbedding: padding_index \(5\) must be less"):
        QuantizedEmbedding(5, 32, padding_index=5)


def test_gradients_flow_to_inputs_and_biases(backend: str) -> None:
    small, _ = quantize(dense(matrix(8, 32)))
    assert [name for name, _ in small.named_parameters()] == ["bias"]
    x = array(matrix(3, 32, 1))
    with GradientTape() as tape:
        tape.watch(x)
        loss = small(x).sum()
    to_x, to_bias = tape.gradient(loss, [x, small.bias])
    columns = small.weight.numpy().sum(0)
    np.testing.assert_allclose(to_x.numpy(), np.tile(columns, (3, 1)), rtol=1e-4, atol=1e-4)
    assert to_bias.tolist() == [3.0] * 8


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
@pytest.mark.parametrize("bits", [8, 4])
def test_dtypes(dtype: str, bits: int, backend: str) -> None:
    if not has_dtype(backend, dtype):
        pytest.skip(f"{backend} has no {dtype}")
    weight, x = matrix(16, 64), matrix(5, 64, 1)
    layer = dense(weight).to(dtype=dtype)
    small, _ = quantize(layer, bits=bits)
    out = small(array(x).astype(dtype))
    assert out.dtype.name == small.scale.dtype.name == dtype
    values = small.weight.astype("float32").numpy()
    step = small.scale.astype("float32").numpy().max()
    assert np.abs(values - weight).max() < 0.5 * step + 0.02  # of half precision
    expected = x @ values.T
    error = np.abs(out.astype("float32").numpy() - expected).max()
    assert error < 0.02 * np.abs(expected).max()
    if dtype != "float64":
        other = quantize(dense(weight), bits=bits)[0].to(dtype=dtype)
        assert other(array(x).astype(dtype)).dtype.name == dtype


def test_layers_quantize_where_they_are(backend: str) -> None:
    elsewhere = other_than(backend)
    with use_backend(elsewhere):
        model = nn.Sequential(Embedding(5, 32), Dense(32, 32))
    small, report = quantize(model, bits=4, embeddings=True)
    assert report.quantized == ("0", "1")
    variables = [*small.parameters(), *small.buffers()]
    assert {variable.backend for variable in variables} == {elsewhere}


def test_a_range_that_overflows_is_an_error(backend: str) -> None:
    weight = matrix(4, 32)
    weight[0, :2] = 3e38, -3e38
    with pytest.raises(ValueError, match=r"quantize: weight has a range that is too large"):
        quantize(dense(weight), bits=4)
    small, _ = quantize(dense(weight))
    np.testing.assert_allclose(small.weight.numpy()[0, :2], weight[0, :2], rtol=1e-5)


def test_no_copy_in_floating_point_is_kept(backend: str) -> None:
    model = nn.Sequential(Dense(97, 131), Dense(131, 97))
    small, _ = quantize(model, bits=4)
    del model
    small(ops.ones((2, 97))).numpy()
    gc.collect()
    tensors = [each for each in gc.get_objects() if issubclass(type(each), EmberTensor)]
    sizes = [x.size for x in tensors if x.dtype.is_floating]
    assert len(tensors) > 5  # the collector sees tensors
    assert 131 * 97 not in sizes


def test_memory_shrinks(on_numpy: None) -> None:
    tracemalloc.start()
    try:
        model = nn.Sequential(*[Dense(256, 256) for _ in range(4)])
        small, report = quantize(model)
        del model
        small(ops.ones((2, 256)))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.ratio < 0.28
    assert held < 1.2 * report.bytes_after


def test_training_changes_the_other_parameters_only(backend: str) -> None:
    small, _ = quantize(language_model())
    before = {name: value.numpy().copy() for name, value in small.state_dict().items()}
    trainer = Trainer(small, "cross_entropy", learning_rate=0.1, progress=False)
    trainer.fit((TOKENS, TOKENS), steps=1, batch_size=2)
    after = {name: value.numpy() for name, value in small.state_dict().items()}
    changed = {name for name, value in after.items() if not np.array_equal(value, before[name])}
    assert {"embedding.weight", "head.weight"} <= changed
    packed = {name for name, _ in small.named_buffers()}
    assert len(packed) > 10
    assert not changed & packed


def test_export_is_refused(tmp_path, on_numpy: None) -> None:
    model = nn.models.TransformerModel(64, 16, gated=True, activation="silu", bias=False)
    with pytest.raises(TypeError, match="export: the model has quantized layers"):
        convert.export(quantize(model)[0], tmp_path / "out")


def test_wrong_arguments(on_numpy: None) -> None:
    model = nn.Sequential(Dense(32, 32))
    for call, message in (
        (lambda: quantize(model, bits=2), "bits must be 4 or 8, not 2"),
        (lambda: quantize(model, group_size=0), "group_size must be a positive integer, not 0"),
        (lambda: quantize(model, group_size=2.5), "group_size must be a positive integer, not 2.5"),
        (lambda: quantize(model, skip=["1"]), "skip='1' matches no module of Sequential"),
        (lambda: quantize(3), "expected a module, got 3"),
        (lambda: QuantizedDense(4, 4, bits=5), "bits"),
        (lambda: QuantizedDense(32, 4)(ops.ones((2, 31))), "expected 32 features"),
        (lambda: ops.dequantize(ops.ones(4, dtype="int32"), [1.0]), "must be int8, or uint8"),
        (lambda: ops.dequantize(ops.zeros((2, 8), dtype="int8"), [[1.0]]), "got packed weights of"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


@pytest.mark.parametrize("bad", ["scale", "shift", "group"])
def test_shapes_are_checked_on_every_backend(bad: str, backend: str) -> None:
    scale, shift = (
        ops.ones((4, 2 if bad == "scale" else 1)),
        ops.ones((3 if bad == "shift" else 4, 1)),
    )
    packed = ops.zeros((4, 32), dtype="int8")
    size = 0 if bad == "group" else 32
    with pytest.raises(ValueError, match="quantize"):
        ops.quantized_linear(ops.ones((2, 32)), packed, scale, shift, group_size=size)


MODULES = [
    entry
    for kind in ("layers", "blocks", "models")
    for entry in registry.available(kind)
    if not issubclass(entry.target, Packed) and not hasattr(entry.target, "role")
]
ILL_CONDITIONED = {
    "layers/linear_attention": "features of both signs: a denominator comes close to zero",
    "layers/mh_linear_attention": "features of both signs: a denominator comes close to zero",
}
"""Layers in which rounding the weights can change some outputs by more than a tenth, and why."""


def example(module: nn.Module) -> np.ndarray:
    parts = dict(module.named_children())
    if any(isinstance(parts.get(name), Embedding) for name in ("embedding", "entry")):
        return TOKENS
    if isinstance(module, nn.models.Forecaster):
        return np.random.default_rng(0).standard_normal((2, 5, 2)).astype(np.float32)
    return inputs_of(module)


@pytest.mark.parametrize("entry", MODULES, ids=lambda entry: entry.name)
def test_every_component_stays_close(entry: Entry, backend: str) -> None:
    ops.random.set_seed(7)
    model = config_of(entry).create().eval()
    x = array(example(model))
    small, report = quantize(model, group_size=16, skip=(), embeddings=True)
    candidates = [module for module in model.modules() if isinstance(module, (Dense, Embedding))]
    assert len(report.quantized) + len(report.kept) == len(candidates)
    packed = [module for module in small.modules() if isinstance(module, Packed)]
    assert len(packed) == len(report.quantized)
    assert report.bytes_after < report.bytes_before or not packed
    assert small.num_parameters() == model.num_parameters()
    expected, got = model(x).numpy(), small(x).numpy()
    assert got.shape == expected.shape
    errors = np.abs(got - expected) / np.abs(expected).max()
    worst = np.median(errors) if entry.name in ILL_CONDITIONED else errors.max()
    assert worst < 0.1
    assert packed or worst == 0.0


@pytest.mark.parametrize("bits", [8, 4])
def test_inputs_of_another_width_are_refused(bits: int, backend: str) -> None:
    layer, _ = quantize(dense(matrix(3, 20)), bits)
    for width in (19, 21, 18):
        with pytest.raises(ShapeError, match="QuantizedDense: expected 20 features"):
            layer(ops.ones((2, width)))
    embedding = QuantizedEmbedding(4, 20, bits=bits)
    with pytest.raises(ShapeError, match="QuantizedEmbedding: expected 20 features"):
        embedding.attend(ops.ones((2, 19)))
