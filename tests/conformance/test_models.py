"""Every registered model, on every backend: training, transfer between backends, generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ember_ml import nn, ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.nn import models
from ember_ml.nn.models.pooling import extend_pool, initial_pool, pool
from ember_ml.nn.tensor import array
from ember_ml.registry import Entry
from ember_ml.training import Trainer
from tests.backends import has_dtype
from tests.conformance.test_layers import close
from tests.examples_of import config_of

MODELS = registry.available("models")
GENERATORS = [entry for entry in MODELS if issubclass(entry.target, models.Generator)]
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "max_length": 24,
    "mixers": "mamba attention",
    "num_experts": 4,
    "num_layers": 2,
    "units": 16,
}
"""Values of fields that keep a model small."""
BATCH, TIME, VOCABULARY = 4, 6, 11

of_each_model = pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.name)
of_each_generator = pytest.mark.parametrize("entry", GENERATORS, ids=lambda entry: entry.name)


def make(entry: Entry, **options: Any) -> Any:
    """Return the same model on every backend."""
    fields = entry.config.model_fields
    small = {name: value for name, value in SMALL.items() if name in fields}
    ops.random.set_seed(5)
    return entry.config(**{**dict(config_of(entry)), **small, **options}).create()


def language_model(layers: str = "gru swiglu", **options: Any) -> models.LanguageModel:
    ops.random.set_seed(5)
    return models.LanguageModel(layers, VOCABULARY, 16, **options)


def data(model: nn.Module) -> tuple[np.ndarray, np.ndarray, str]:
    """Inputs that the model takes, targets, and a loss."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, VOCABULARY, (BATCH, TIME))
    config = model.config.model_dump()
    features = config.get("in_features") or (
        config["features"] if isinstance(model, models.Forecaster) else None
    )
    x = tokens if features is None else rng.standard_normal((BATCH, TIME, features))
    x = x if features is None else x.astype("float32")
    shape = model.eval()(array(x)).shape
    model.train()
    if isinstance(model, models.SequenceClassifier):
        return x, rng.integers(0, shape[-1], BATCH), "cross_entropy"
    if features is None:
        return x, np.roll(tokens, -1, axis=1), "cross_entropy"
    return x, rng.standard_normal(shape).astype("float32"), "mse"


def test_there_are_generators() -> None:
    assert len(GENERATORS) >= 10


@of_each_model
def test_training_curves_agree_across_backends(entry: Entry) -> None:
    curves = []
    for backend in available():
        with use_backend(backend):
            model = make(entry)
            x, y, loss = data(model)
            trainer = Trainer(
                model, loss, optimizer="adamw", learning_rate=0.01, progress=False, compile=False
            )
            curves.append(trainer.fit((x, y), steps=5, batch_size=BATCH).losses)
    assert len(curves[0]) == 5
    assert curves[0][-1] < curves[0][0]
    for curve in curves[1:]:
        np.testing.assert_allclose(curve, curves[0], rtol=1e-3)


@of_each_model
def test_a_checkpoint_moves_between_backends(entry: Entry, tmp_path: Path) -> None:
    for backend in available():
        with use_backend(backend):
            model = make(entry)
            x = data(model)[0]
            model.save_pretrained(tmp_path / backend)
            out = model.eval()(array(x)).numpy()
    for source in available():
        for backend in available():
            with use_backend(backend):
                read = entry.target.from_pretrained(tmp_path / source)
                assert type(read) is entry.target
                assert read.parameters()[0].backend == backend
                assert read.config == model.config
                assert close(read.eval()(array(x)).numpy(), out), (source, backend)
    other = models.AutoEncoder if entry.target is models.LiquidModel else models.LiquidModel
    with pytest.raises(ValueError, match=f"not a {other.__name__}"):
        other.load(tmp_path / available()[0])


STATEFUL = [entry for entry in MODELS if "initial_state" in dir(entry.target)]
WITHOUT_STATE = {
    "models/autoencoder": "decodes from the last position",
    "models/forecaster": "normalizes by the whole series",
}
"""Models that need the whole sequence, and why."""


def test_models_have_a_state_or_a_reason() -> None:
    assert {e.name for e in MODELS} - {e.name for e in STATEFUL} == set(WITHOUT_STATE)


@pytest.mark.parametrize("entry", STATEFUL, ids=lambda entry: entry.name)
def test_parts_of_padded_sequences_equal_each_alone(entry: Entry, backend: str) -> None:
    model = make(entry)
    x, _, _ = data(model)
    model.eval()
    lengths = [TIME, 4, 2, 1]
    alone = [model(array(x[at : at + 1, :n])).numpy()[0] for at, n in enumerate(lengths)]
    is_pooled = alone[0].ndim < 2  # one output for all positions so far
    for size in (1, 4, TIME):
        state, outputs = model.initial_state(BATCH), []
        for start in range(0, TIME, size):
            part = x[:, start : start + size]
            mask = np.arange(start, start + part.shape[1]) < np.array(lengths)[:, None]
            y, state = model(array(part), array(mask), state=state)
            outputs.append(y.numpy()[:, None] if is_pooled else y.numpy())
        whole = np.concatenate(outputs, axis=1)
        after, _ = model.step(array(x[:, 0]), state)
        for at, n in enumerate(lengths):
            got = whole[at, -1] if is_pooled else whole[at, :n]
            assert close(got, alone[at], 3e-4)
            longer = array(np.concatenate([x[at : at + 1, :n], x[at : at + 1, :1]], axis=1))
            expected = model(longer).numpy()[0]
            assert close(after.numpy()[at], expected if is_pooled else expected[-1], 3e-4)


@of_each_generator
def test_prefill_returns_the_logits_after_each_prompt(entry: Entry, backend: str) -> None:
    model = make(entry).eval()
    tokens = data(model)[0]
    model.eval()
    mask = np.arange(TIME) < np.array([[TIME], [3], [1], [5]])
    logits, state = model.prefill(array(tokens), array(mask))
    for at, n in enumerate(mask.sum(1)):
        assert close(logits.numpy()[at], model(array(tokens[at : at + 1, :n])).numpy()[0, -1], 3e-4)
    _, once_more = model.prefill(array(tokens[:, :2]), state=state)
    assert int(once_more[0][1]) == 5
    with pytest.raises(ValueError, match=r"prefill: each row needs at least one real token"):
        model.prefill(array(tokens), array(mask & (np.arange(BATCH) > 0)[:, None]))
    with pytest.raises(ValueError, match=r"prefill: each row needs at least one real token"):
        model.prefill(array(tokens[:, :0]))


@of_each_generator
def test_generation_with_and_without_a_cache(entry: Entry) -> None:
    prompt = [[1, 2, 3], [7, 7, 0]]
    found = []
    for backend in available():
        with use_backend(backend):
            model = make(entry)
            for options in ({}, {"temperature": 1.0, "top_k": 8, "top_p": 0.95, "seed": 3}):
                made = [
                    model.generate(prompt, 5, cache=cache, **options) for cache in (True, False)
                ]
                assert made[0].shape == (2, 8)
                assert made[0].backend == backend
                assert made[0].tolist() == made[1].tolist()
                found.append((bool(options), made[0].tolist()))
            assert model.training
    for sampled in (False, True):
        assert len({str(tokens) for of, tokens in found if of is sampled}) == 1


@of_each_generator
def test_what_is_made_is_what_is_streamed(entry: Entry, backend: str) -> None:
    model = make(entry)
    made = model.generate([4, 5], 4, temperature=0.7, seed=1)
    streamed = model.stream([4, 5], 4, temperature=0.7, seed=1)
    first = next(streamed)
    assert first.shape == (1,)
    assert made.tolist() == [4, 5, first.item(), *[token.item() for token in streamed]]


@of_each_generator
def test_greedy_takes_the_likeliest(entry: Entry, backend: str) -> None:
    model = make(entry).eval()
    tokens = array([[3, 1, 4]])
    for _ in range(3):
        tokens = ops.concat([tokens, ops.argmax(model(tokens)[:, -1:], axis=-1)], axis=1)
    greedy = model.generate([[3, 1, 4]], 3).tolist()
    assert greedy == tokens.tolist()
    for options in ({"top_k": 1}, {"top_p": 1e-6}):
        assert model.generate([[3, 1, 4]], 3, temperature=2.0, seed=0, **options).tolist() == greedy


def test_draws_follow_the_distribution(backend: str) -> None:
    model = language_model(tie_weights=True).eval()
    logits = model(array([[2, 9]]))[0, -1].numpy().astype(np.float64)
    prompt = np.tile([2, 9], (1000, 1))

    def drawn(**options: Any) -> np.ndarray:
        tokens = model.generate(prompt, 1, seed=0, **options).numpy()[:, -1]
        return np.bincount(tokens, minlength=VOCABULARY) / len(prompt)

    def expected(temperature: float, kept: np.ndarray) -> np.ndarray:
        odds = np.where(kept, np.exp(logits / temperature), 0.0)
        return odds / odds.sum()

    everything, order = np.ones(VOCABULARY, bool), np.argsort(-logits)
    odds = expected(1.0, everything)
    top_3, nucleus = np.zeros_like(everything), np.zeros_like(everything)
    top_3[order[:3]] = True
    nucleus[order[: 1 + int(np.argmax(np.cumsum(odds[order]) >= 0.6))]] = True
    for options, truth in [
        ({"temperature": 1.0}, odds),
        ({"temperature": 0.5}, expected(0.5, everything)),
        ({"temperature": 1.0, "top_k": 3}, expected(1.0, top_3)),
        ({"temperature": 1.0, "top_p": 0.6}, expected(1.0, nucleus)),
        ({"temperature": 1.0, "top_k": 3, "top_p": 1.0}, expected(1.0, top_3)),
    ]:
        shares = drawn(**options)
        assert (shares[truth == 0] == 0).all()
        assert np.abs(shares - truth).max() < 5 * 0.5 / np.sqrt(len(prompt))


def test_stop_tokens_end_a_sequence(backend: str) -> None:
    model = language_model()
    prompt = [[1, 2], [9, 4], [0, 6]]
    free = model.generate(prompt, 8, temperature=1.0, seed=2).numpy()
    stop = int(free[0, 4])
    ended = model.generate(prompt, 8, temperature=1.0, seed=2, stop_tokens=stop).numpy()
    for before, after in zip(free, ended, strict=True):
        places = np.flatnonzero(before[2:] == stop)
        at = 3 + places[0] if len(places) else len(after)  # behind the first one
        assert (after[:at] == before[: len(after)][:at]).all()
        assert (after[at:] == stop).all()
    short = model.generate([1, 2], 8, temperature=1.0, seed=2, stop_tokens=range(VOCABULARY))
    assert short.shape == (3,)
    assert model.generate([1, 2], 0).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([1, 2, 3], {"max_new_tokens": 6}, "3 tokens and 6 new ones exceed max_length=8"),
        ([1, 11], {}, "tokens from 1 to 11; the vocabulary has those from 0 to 10"),
        ([-1, 1], {}, "tokens from -1 to 1"),
        ([], {}, "at least one token"),
        ([[[1]]], {}, r"\(1, 1, 1\)"),
        ([0.5], {}, "must have integers, not float32"),
        ([1], {"max_new_tokens": -1}, "max_new_tokens=-1 must be at least 0"),
        ([1], {"temperature": -1.0}, "temperature=-1.0 must be at least 0"),
        ([1], {"top_k": 0}, "top_k=0 must be at least 1"),
        ([1], {"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
    ],
)
def test_what_cannot_be_generated(prompt: Any, options: dict, message: str, backend: str) -> None:
    model = language_model(max_length=8, positions="learned")
    with pytest.raises((ValueError, TypeError), match=message):
        model.generate(prompt, **{"max_new_tokens": 2, **options})
    assert model.generate([1, 2, 3], 5).shape == (8,)
    with pytest.raises(ValueError, match="got 9 tokens, but max_length=8"):
        model(ops.ones((1, 9), dtype="int64"))


def test_generation_leaves_the_modes_as_they_were(backend: str) -> None:
    model = language_model(dropout=0.5)
    model.embedding.eval()
    assert model.generate([1], 3).tolist() == model.generate([1], 3).tolist()
    assert model.training
    assert not model.embedding.training


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_positions_by_steps(positions: str, backend: str) -> None:
    model = language_model("attention[positions=none]", positions=positions, max_length=8)
    prompt = [[5, 5, 5, 5]]
    assert model.generate(prompt, 4).tolist() == model.generate(prompt, 4, cache=False).tolist()
    logits = model.eval()(array(prompt)).numpy()
    assert np.abs(logits[0, 0] - logits[0, 3]).max() > 1e-4  # the same token at another place


def test_tied_weights_are_one_parameter_with_one_gradient(backend: str) -> None:
    tied, free = language_model(tie_weights=True), language_model()
    assert free.num_parameters() - tied.num_parameters() == VOCABULARY * 16
    free.load_state_dict({**tied.state_dict(), "head.weight": tied.embedding.weight})
    tokens = array([[1, 2, 3], [4, 5, 6]])

    def gradients(model: nn.Module) -> dict[str, Any]:
        return nn.value_and_grad(model, lambda: (model(tokens) ** 2).sum())()[1]

    one, two = gradients(tied), gradients(free)
    assert set(two) - set(one) == {"head.weight"}
    total = two["embedding.weight"] + two["head.weight"]
    assert close(one["embedding.weight"].numpy(), total.numpy())
    shifted = language_model(tie_weights=True, head_bias=True)
    assert shifted.num_parameters() - tied.num_parameters() == VOCABULARY


def test_parameters_by_hand(backend: str) -> None:
    width, layers = 32, 3
    transformer = models.TransformerModel(VOCABULARY, width, layers)
    attention, feed_forward = 4 * (width + 1) * width, 2 * 4 * width**2 + 5 * width
    expected = 2 * VOCABULARY * width + layers * (attention + feed_forward + 2 * width) + width
    assert transformer.num_parameters() == expected
    lstm = torch.nn.LSTM(width, width)
    cells = sum(weight.numel() for weight in lstm.parameters())
    swiglu = 3 * width * 96  # 8/3 of the width, up to a multiple of 16
    expected = 2 * VOCABULARY * width + layers * (cells + swiglu + 2 * width) + width
    assert models.LSTMModel(VOCABULARY, width, layers).num_parameters() == expected


@pytest.mark.parametrize("pooling", ["last", "mean", "max"])
def test_padding_does_not_change_the_output_for_a_sequence(pooling: str, backend: str) -> None:
    ops.random.set_seed(5)
    layers = "gru attention[causal=false]"
    model = models.SequenceClassifier(layers, 3, VOCABULARY, hidden_size=16, pooling=pooling)
    tokens = np.random.default_rng(0).integers(0, VOCABULARY, (2, 7))
    mask = np.ones((2, 7), bool)
    mask[0, 4:] = False
    padded = model.eval()(array(tokens), array(mask)).numpy()
    assert close(padded[:1], model(array(tokens[:1, :4])).numpy())
    assert close(padded[1:], model(array(tokens[1:])).numpy())
    encoder = models.AutoEncoder("gru swiglu", VOCABULARY, 16).eval()
    codes = encoder.encode(array(tokens), array(mask)).numpy()
    assert close(codes[:1], encoder.encode(array(tokens[:1, :4])).numpy())


def test_a_forecast_follows_the_level_of_its_series(backend: str) -> None:
    ops.random.set_seed(5)
    model = models.Forecaster("gru", 2, horizon=3, hidden_size=16).eval()
    x = np.random.default_rng(0).standard_normal((2, 9, 2)).astype("float32")
    there = model(array(x)).numpy()
    assert close(model(array(5.0 * x + 40.0)).numpy(), 5.0 * there + 40.0, 1e-3)
    ahead = model.forecast(array(x), 5).numpy()
    assert close(ahead[:, :3], there)
    again = model(array(np.concatenate([x, there], axis=1)[:, -9:])).numpy()
    assert close(ahead[:, 3:], again[:, :2])


def test_a_policy_goes_step_by_step(backend: str) -> None:
    for cell in ("wired_cfc", "ltc", "cfc"):
        ops.random.set_seed(5)
        model = models.LiquidModel(3, 2, units=12, cell=cell).eval()
        x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype("float32")
        spans = np.linspace(0.1, 2.0, 5, dtype="float32")
        whole = model(array(x), timespans=array(spans)).numpy()
        state = model.initial_state(2)
        for at in range(5):
            action, state = model.step(array(x[:, at]), state, float(spans[at]))
            assert close(action.numpy(), whole[:, at], 2e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: models.SequenceClassifier("gru", 3), "pass either vocab_size"),
        (lambda: models.SequenceRegressor("gru", 1, 4, 4), "pass either vocab_size"),
        (lambda: models.LanguageModel("gru", 8, positions="learned"), "needs max_length"),
        (lambda: models.LanguageModel("gruu", 8), "did you mean 'gru'"),
        (lambda: models.LanguageModel("mh_attention[num_heads=3]", 8, 16), "num_heads"),
        (lambda: models.Forecaster("gru").forecast(ops.ones((1, 3, 1)), 0), "steps=0"),
        (lambda: models.LanguageModel("gru", 8, 8)(ops.ones(3, dtype="int64")), "LanguageModel"),
        (lambda: models.AutoEncoder("gru", 8, 8)(ops.ones(3, dtype="int64")), "AutoEncoder"),
        (lambda: models.Forecaster("gru")(ops.ones((3, 1))), "Forecaster"),
        (lambda: models.SequenceRegressor("gru", in_features=2)(ops.ones((3, 2))), "Regressor"),
    ],
)
def test_errors_say_what_is_wrong(make: Any, message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("entry", registry.available("models"), ids=lambda entry: entry.name)
def test_every_model_says_what_it_is_trained_by(entry: Entry) -> None:
    """A trainer uses the default loss of the model, unless another one is passed."""
    with use_backend("numpy"):
        model = config_of(entry).create()
    expected = {"cross_entropy", "mse"}
    assert model.default_loss in expected
    assert Trainer(model, progress=False).config.loss.component == f"losses/{model.default_loss}"
    assert Trainer(model, "huber", progress=False).config.loss.component == "losses/huber"


def test_the_mean_of_a_long_stream_in_half_precision(backend: str) -> None:
    """The number of positions exceeds the integers that the dtype has."""
    dtype = "bfloat16" if has_dtype(backend, "bfloat16") else "float16"
    time = 600 if dtype == "bfloat16" else 4400
    x = np.full((1, time, 4), 0.5, np.float32)
    x[:, time // 2 :] = 1.0
    half = array(x).astype(dtype)
    state = initial_pool("mean", 1, 4, half)
    for at in range(time):
        y, state = extend_pool(half[:, at : at + 1], None, "mean", state)
    masked = pool(half, array(np.ones((1, time), bool)), "mean")
    for mean in (y, masked):
        assert mean.dtype.name == dtype
        assert np.allclose(mean.astype("float32").numpy(), 0.75, atol=4e-3)
