"""Options of generation: unequal prompts, samples, log-probabilities, stops, choices, beams."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.backend import available, use_backend
from ember_ml.nn import models
from ember_ml.nn.models.decoding import Generation
from ember_ml.nn.models.decoding.call import NonFiniteLogitsError
from ember_ml.nn.models.sampling import row_seed
from ember_ml.nn.tensor import array

VOCABULARY = 32
PROMPTS = [[1, 2, 3, 4], [5], [6, 7], [8, 9, 10, 11], [12, 13]]
LAYERS = ("attention swiglu", "attention[window=2] gru", "mamba swiglu", "hyena", "rwkv", "lru")


def language_model(layers: str = "attention swiglu gru", seed: int = 0, **options: Any) -> Any:
    ops.random.set_seed(seed)
    options = {"max_length": 32, **options} if "hyena" in layers else options
    return models.LanguageModel(layers, VOCABULARY, 16, **options).eval()


def alone(model: Any, prompt: list[int], count: int, **options: Any) -> list[int]:
    return model.generate(prompt, count, **options).tolist()[len(prompt) :]


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("cache", [True, False])
def test_a_ragged_batch_has_the_tokens_of_each_prompt_alone(
    layers: str, cache: bool, backend: str
) -> None:
    model = language_model(layers)
    options: dict[str, Any] = {"cache": cache}
    greedy = model.generate(PROMPTS, 5, **options)
    assert greedy.tokens == [alone(model, prompt, 5, **options) for prompt in PROMPTS]
    assert greedy.prompts == PROMPTS
    options |= {"temperature": 1.3, "top_k": 20}
    sampled = model.generate(PROMPTS, 5, seed=7, **options)
    assert sampled.tokens == [
        alone(model, prompt, 5, seed=row_seed(7, row), **options)
        for row, prompt in enumerate(PROMPTS)
    ]
    seeds = [3, 1, 4, 1, 5]
    assert model.generate(PROMPTS, 5, seed=seeds, **options).tokens == [
        alone(model, prompt, 5, seed=seed, **options)
        for prompt, seed in zip(PROMPTS, seeds, strict=True)
    ]
    assert sampled.tokens != greedy.tokens


def test_a_mask_is_the_same_as_lists(backend: str) -> None:
    model = language_model()
    longest = max(map(len, PROMPTS))
    padded = [row + [31] * (longest - len(row)) for row in PROMPTS]
    mask = [[at < len(row) for at in range(longest)] for row in PROMPTS]
    found = model.generate(array(padded), 4, mask=array(mask), repetition_penalty=3.0)
    assert found == model.generate(PROMPTS, 4, repetition_penalty=3.0)
    assert found.prompts == PROMPTS


@functools.cache
def _by_options() -> dict[str, list[Any]]:
    """Return the results of all options on every backend."""
    results: dict[str, list[Any]] = {name: [] for name in OPTIONS}
    for backend in available():
        with use_backend(backend):
            model, draft = language_model(), language_model("gru", seed=1)
            for name, options in OPTIONS.items():
                extra = {"draft": draft} if "draft_tokens" in options else {}
                results[name].append(model.complete(PROMPTS, 8, **options, **extra))
    return results


SAMPLED: dict[str, Any] = {"temperature": 1.0, "seed": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "eos": {"eos": [3, 14, 17]},
    "sampled": SAMPLED,
    "top_k": {**SAMPLED, "top_k": 3},
    "top_p": {**SAMPLED, "top_p": 0.3},
    "min_p": {**SAMPLED, "min_p": 0.6},
    "repetition_penalty": {"repetition_penalty": 5.0},
    "presence_penalty": {"presence_penalty": 3.0},
    "frequency_penalty": {"frequency_penalty": 1.0},
    "logit_bias": {"logit_bias": {14: -100.0, 17: -float("inf"), 2: 1.0}},
    "min_new_tokens": {"eos": [3, 14, 17, 28, 6], "min_new_tokens": 5},
    "num_samples": {**SAMPLED, "num_samples": 3},
    "allowed": {**SAMPLED, "allowed": [[1, 2, 3], [1, 4], [9]]},
    "beams": {"num_beams": 3, "eos": [3, 27]},
    "beams of choices": {"num_beams": 2, "allowed": [[1, 2, 3], [1, 4], [9]]},
    "speculative": {"draft_tokens": 3},
    "speculative, sampled": {**SAMPLED, "draft_tokens": 3, "frequency_penalty": 0.5},
    "recomputed": {"cache": False, "repetition_penalty": 5.0},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_on_every_backend(name: str) -> None:
    results = _by_options()[name]
    assert len(results) == len(available())
    for each in results[1:]:
        assert each.tokens == results[0].tokens
        assert each.finish_reason == results[0].finish_reason
    same = {"greedy", "speculative", "recomputed"}
    if name not in same:
        assert results[0].tokens != _by_options()["greedy"][0].tokens
    if name in ("recomputed", "speculative"):
        other = "greedy" if name == "speculative" else "repetition_penalty"
        assert results[0].tokens == _by_options()[other][0].tokens


def test_samples_of_a_prompt_follow_each_other(backend: str) -> None:
    model = language_model()
    found = model.generate([[1, 2], [3]], 6, num_samples=3, temperature=1.0, seed=0)
    assert isinstance(found, Generation)
    assert found.prompts == [[1, 2]] * 3 + [[3]] * 3
    assert len({tuple(tokens) for tokens in found.tokens}) == 6
    repeated = [[1, 2], [1, 2], [1, 2], [3], [3], [3]]
    assert model.generate(repeated, 6, temperature=1.0, seed=0).tokens == found.tokens
    streamed = model.stream([[1, 2], [3]], 6, num_samples=3, temperature=1.0, seed=0)
    assert ops.stack(list(streamed), axis=1).tolist() == found.tokens


def test_log_probs_are_those_of_the_model(backend: str) -> None:
    model = language_model()
    for options in ({}, {"num_beams": 3}, {"draft": language_model("gru", 1)}, {**SAMPLED}):
        found = model.generate(PROMPTS, 4, log_probs=True, frequency_penalty=0.5, **options)
        for prompt, tokens, values in zip(
            found.prompts, found.tokens, found.log_probs, strict=True
        ):
            scores = ops.log_softmax(model(array([prompt + tokens]))[0], axis=-1).numpy()
            expected = scores[len(prompt) - 1 : -1][range(4), tokens]
            np.testing.assert_allclose(values, expected, atol=1e-4)


def test_eos_and_stop_tokens_are_the_same(backend: str) -> None:
    model = language_model()
    free = model.generate(PROMPTS, 8).tokens
    stop, other = free[0][2], free[1][1]
    found = model.generate(PROMPTS, 8, eos=[stop, other])
    assert found == model.generate(PROMPTS, 8, stop_tokens=[other], eos=stop)
    for before, after, reason in zip(free, found.tokens, found.finish_reason, strict=True):
        end = next((at + 1 for at, x in enumerate(before) if x in (stop, other)), 8)
        assert after == before[:end]
        assert reason == ("stop" if before[end - 1] in (stop, other) else "length")
    assert found.finish_reason[:2] == ["stop", "stop"]
    assert model.generate([1, 2], 8, eos=None).shape == (10,)
    equal = [[1, 2], [3, 4]]
    ends = model.generate(equal, 8, num_beams=2, eos=range(VOCABULARY))
    assert ends.shape == (2, 3)


def test_choices(backend: str) -> None:
    model = language_model()
    choices = [[1, 2, 3], [1, 4], [9], [9, 9, 9]]
    options: dict[str, Any] = {"temperature": 5.0, "seed": 0, "num_samples": 40}
    found = model.generate([[5], [6, 7]], 4, allowed=choices, eos=31, **options)
    ended = [tokens if tokens[-1] != 31 else tokens[:-1] for tokens in found.tokens]
    assert {tuple(tokens) for tokens in ended} == {tuple(choice) for choice in choices}
    assert set(found.finish_reason) == {"stop"}
    greedy = model.generate([5], 3, allowed=[[1, 2, 3], [9]], log_probs=True)
    assert greedy.tokens[0] in ([1, 2, 3], [9])
    best = model.generate([5], 3, allowed=[[1, 2, 3], [1, 4], [9]], num_beams=3, length_penalty=0.0)
    totals = {}
    for choice in ([1, 2, 3], [1, 4], [9]):
        scores = ops.log_softmax(model(array([[5, *choice]]))[0], axis=-1).numpy()
        totals[tuple(choice)] = float(scores[range(len(choice)), choice].sum())
    assert tuple(best.tokens[0]) == max(totals, key=totals.__getitem__)


def test_beams_of_a_ragged_batch(backend: str) -> None:
    model = language_model()
    options: dict[str, Any] = {"num_beams": 3, "eos": [3, 14], "repetition_penalty": 1.2}
    found = model.generate(PROMPTS, 6, num_samples=2, **options)
    expected = [model.complete(prompt, 6, num_samples=2, **options) for prompt in PROMPTS]
    assert found.tokens == [tokens for each in expected for tokens in each.tokens]
    one = model.generate([1, 2], 6, num_beams=1).tolist()
    assert one == model.generate([1, 2], 6).tolist()


class Broken(models.Generator):
    """Language model with the recurrent form only, whose logits are NaN after a token."""

    trigger = -1

    def __init__(self) -> None:
        self.vocab_size = VOCABULARY
        self.inner = language_model("gru")

    def initial_state(self, batch: int) -> Any:
        return self.inner.initial_state(batch)

    def step(self, tokens: Any, state: Any) -> Any:
        logits, state = self.inner.step(tokens, state)
        return ops.where((tokens == self.trigger)[:, None], float("nan"), logits), state


@pytest.mark.parametrize(
    "options", [{}, {"eos": 31}, {**SAMPLED}, {"num_beams": 2}, {"draft_tokens": 3}]
)
def test_nan_logits(options: dict[str, Any], backend: str) -> None:
    model = Broken()
    if "draft_tokens" in options:
        options = {**options, "draft": language_model("gru", 1)}
    free = model.complete([[5, 6], [7, 8, 9]], 20, **options)
    assert free.tokens == model.inner.complete([[5, 6], [7, 8, 9]], 20, **options).tokens
    assert len(free.tokens[1]) == 20
    model.trigger = 9
    with pytest.raises(NonFiniteLogitsError, match=r"row 1 at position 3 \(new token 0\) are NaN"):
        model.generate([[5, 6], [7, 8, 9]], 20, **options)
    model.trigger = free.tokens[0][3]
    at = min(free.tokens[0].index(model.trigger), 3) + 1
    message = rf"row 0 at position {2 + at} \(new token {at}\)"
    if "num_beams" not in options:
        with pytest.raises(NonFiniteLogitsError, match=message):
            model.generate([5, 6], 20, **options)
        with pytest.raises(NonFiniteLogitsError, match=message):
            list(model.stream([5, 6], 20, **options))


@pytest.mark.parametrize(
    ("prompt", "options", "error", "message"),
    [
        ([], {}, ShapeError, "at least one token"),
        ([[1, 2], []], {}, ShapeError, "prompt 1 of the batch has no tokens"),
        ([[1, 2], [40]], {}, ArgumentError, "prompt 1 of the batch has tokens from 40 to 40"),
        ([[1, 2], [0.5]], {}, ArgumentTypeError, "must have integers"),
        ([[1, 2], [3, 4]], {"mask": [[1, 1]]}, ShapeError, "prompt and mask must have the same"),
        ([[1, 2]], {"mask": [[0, 1]]}, ArgumentError, "row 0 of the mask must be True"),
        ([[1, 2]], {"mask": [[0, 0]]}, ArgumentError, "row 0 of the mask must be True"),
        ([[1] * 30, [2]], {}, ArgumentError, "30 tokens and 4 new ones exceed max_length=32"),
        ([1], {"temprature": 1.0}, ArgumentTypeError, "no option 'temprature'.*temperature"),
        ([1], {"temperature": float("nan")}, ArgumentError, "temperature=nan must be at least 0"),
        ([1], {"temperature": "1"}, ArgumentTypeError, "temperature must be a number, not '1'"),
        ([1], {"temperature": None}, ArgumentTypeError, "temperature must be a number, not None"),
        ([1], {"top_p": "x"}, ArgumentTypeError, "top_p must be a number, not 'x'"),
        ([1], {"top_k": 1.5}, ArgumentTypeError, "top_k must be an integer, not 1.5"),
        ([1], {"presence_penalty": "x"}, ArgumentTypeError, "presence_penalty must be a number"),
        ([1], {"logit_bias": [1, 2]}, ArgumentTypeError, "logit_bias must map tokens to numbers"),
        ([1], {"logit_bias": {1: "x"}}, ArgumentTypeError, "logit_bias must be a number, not 'x'"),
        ([1], {"max_new_tokens": 2.5}, ArgumentTypeError, "max_new_tokens must be integers"),
        ([1], {"num_samples": 2.5}, ArgumentTypeError, "num_samples must be integers, not 2.5"),
        ([1], {"min_p": 1.5}, ArgumentError, "min_p=1.5 must be between 0 and 1"),
        ([1], {"repetition_penalty": 0.0}, ArgumentError, "repetition_penalty=0.0 must be above"),
        ([1], {"repetition_penalty": -1.0}, ArgumentError, "repetition_penalty=-1.0 must be"),
        ([1], {"presence_penalty": float("nan")}, ArgumentError, "presence_penalty=nan must be"),
        ([1], {"frequency_penalty": float("inf")}, ArgumentError, "frequency_penalty=inf"),
        ([1], {"logit_bias": {99: 1.0}}, ArgumentError, "logit_bias has the token 99"),
        ([1], {"logit_bias": {1: float("nan")}}, ArgumentError, "logit_bias of token 1"),
        ([1], {"eos": 32}, ArgumentError, "eos has the token 32"),
        ([1], {"eos": "a"}, ArgumentTypeError, "eos must be integers, not 'a'"),
        ([1], {"min_new_tokens": 5}, ArgumentError, "min_new_tokens=5 exceeds max_new_tokens=4"),
        ([1], {"min_new_tokens": -1}, ArgumentError, "min_new_tokens=-1 must be at least 0"),
        ([1], {"num_samples": 0}, ArgumentError, "num_samples=0 must be at least 1"),
        ([1], {"seed": [1, 2], "temperature": 1.0}, ArgumentError, "seed has 2 values for 1 rows"),
        ([1], {"allowed": []}, ArgumentError, "allowed has no continuations"),
        ([1], {"allowed": [[1], []]}, ArgumentError, "continuation 1 has no tokens"),
        ([1], {"allowed": [[1], [50]]}, ArgumentError, "continuation 1 has the token 50"),
        ([1], {"allowed": [1]}, ArgumentTypeError, "allowed must be sequences of tokens"),
        ([1], {"allowed": [[1], [1, 2]]}, ArgumentError, r"\[1\] is the beginning of \[1, 2\]"),
        ([1], {"allowed": [[1] * 5]}, ArgumentError, "less than the longest allowed continuation"),
        ([1], {"allowed": [[1], [1, 2]], "eos": 2}, ArgumentError, "stop token 2 also continues"),
        ([1], {"allowed": [[1, 2, 3]], "eos": 2}, ArgumentError, "2 would end continuation 0"),
        ([1], {"num_beams": 0}, ArgumentError, "num_beams=0 must be at least 1"),
        ([1], {"num_beams": 2, "temperature": 1.0}, ArgumentError, "pass temperature=0, not 1.0"),
        ([1], {"num_beams": 2, "num_samples": 3}, ArgumentError, "exceeds num_beams=2"),
        ([1], {"early_stopping": "soon"}, ArgumentError, "early_stopping must be True, False or"),
        ([1], {"length_penalty": float("nan")}, ArgumentError, "length_penalty=nan"),
        ([1], {"length_penalty": 1e6}, ArgumentError, "length_penalty=1000000.0 must be between"),
        (
            [1],
            {"num_beams": 3, "num_samples": 3, "allowed": [[1], [2]]},
            ArgumentError,
            "num_samples=3 exceeds the 2 sequences of allowed",
        ),
        ([1], {"stop": "x"}, ArgumentError, "stop needs a tokenizer"),
        ([1], {"stop": [""]}, ArgumentError, "must be strings, not empty"),
        ([1], {"draft": 3}, ArgumentTypeError, "draft must be a language model, not int"),
        ([1], {"draft_tokens": 0}, ArgumentError, "draft_tokens=0 must be at least 1"),
        (
            [1],
            {"logit_bias": dict.fromkeys(range(VOCABULARY), -float("inf"))},
            NonFiniteLogitsError,
            "exclude every token",
        ),
    ],
)
def test_what_is_refused(
    prompt: Any, options: dict[str, Any], error: type, message: str, backend: str
) -> None:
    model = language_model(positions="learned", max_length=32)
    with pytest.raises(error, match=message):
        model.generate(prompt, **{"max_new_tokens": 4, **options})


def test_prompts_may_be_arrays_of_unequal_length(backend: str) -> None:
    model = language_model()
    expected = model.generate(PROMPTS, 4)
    for rows in (map(np.array, PROMPTS), map(array, PROMPTS), map(tuple, PROMPTS)):
        assert model.generate(list(rows), 4) == expected


def test_a_low_temperature_takes_the_most_likely_tokens(backend: str) -> None:
    model = language_model()
    expected = model.generate(PROMPTS, 4).tokens
    for temperature in (1e-6, 1e-36, 1e-45, 5e-324):
        options: dict[str, Any] = {"temperature": temperature, "top_k": 5, "top_p": 0.9}
        assert model.generate(PROMPTS, 4, seed=0, **options).tokens == expected


def test_no_new_tokens(backend: str) -> None:
    model, draft = language_model(), language_model("gru", 1)
    for options in ({}, {"num_beams": 2}, {"draft": draft}, {"temperature": 1.0}):
        assert model.generate([[1, 2], [3, 4]], 0, **options).tolist() == [[1, 2], [3, 4]]
        found = model.complete(PROMPTS, 0, log_probs=True, **options)
        assert found.tokens == [[]] * 5
        assert found.log_probs == [[]] * 5
        assert found.finish_reason == ["length"] * 5


def test_streams_that_cannot_be(backend: str) -> None:
    model = language_model()
    with pytest.raises(ArgumentError, match="knows its tokens at the end only"):
        model.stream([1], num_beams=2)
    with pytest.raises(ArgumentError, match="draft takes one prompt, not 2 rows"):
        model.stream([[1], [2]], draft=model)


def test_sampling_without_a_seed_is_seeded_by_set_seed(backend: str) -> None:
    model = language_model()
    made = []
    for seed in (1, 1, 2):
        ops.random.set_seed(seed)
        made.append(model.generate([1, 2], 12, temperature=2.0).tolist())
    assert made[0] == made[1] != made[2]
    assert model.generate([1, 2], 12, temperature=2.0).tolist() != made[2]


def test_nn_models_has_the_result() -> None:
    assert nn.models.Generation is Generation


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_positions_end_at_max_length(positions: str, backend: str) -> None:
    model = language_model("gru", positions=positions, max_length=6)
    tokens = array([[1, 2, 3, 4, 5, 6], [7, 8, 9, 1, 2, 3]])
    logits = model(tokens)
    _, state = model(tokens[:, :4], state=model.initial_state(2))
    mask = array([[True, True, False], [True, False, False]])
    padded = array([[5, 6, 0], [2, 0, 0]])
    y, after = model(padded, mask, state=state)  # the padding is beyond the last position
    assert np.allclose(y.numpy()[0, :2], logits.numpy()[0, 4:], atol=1e-5)
    assert np.allclose(y.numpy()[1, 0], logits.numpy()[1, 4], atol=1e-5)
    with pytest.raises(ShapeError, match="got 7 tokens, but max_length=6"):
        model(padded, state=state)
    try:  # a step does not wait for the device to check the position
        beyond = model.step(array([1, 1]), after)[0].numpy()
    except IndexError:
        return
    assert np.isnan(beyond[0]).all()
    assert np.isfinite(beyond[1]).all()


def test_a_state_of_another_batch_or_model_is_refused(backend: str) -> None:
    model = language_model("attention", positions="learned", max_length=8)
    _, state = model.prefill(array([[1, 2], [3, 4], [5, 6]]))
    with pytest.raises(ShapeError, match="LanguageModel: the input has a batch of 1"):
        model(array([[1]]), state=state)
    with pytest.raises(ShapeError, match="LanguageModel: the input has a batch of 1"):
        model.step(array([1]), state)
    other = language_model("gru").initial_state(3)
    with pytest.raises(ArgumentTypeError, match="SelfAttention: expected a KVCache"):
        model(array([[1], [2], [3]]), state=other)
    fixed = nn.states.fix(state, 8)
    with pytest.raises(ArgumentTypeError, match="got FixedCache; only step takes it"):
        model(array([[1], [2], [3]]), state=fixed)
    for use in (lambda: nn.states.take_rows(fixed, [0]), lambda: nn.states.join([fixed, fixed])):
        with pytest.raises(NotImplementedError, match="FixedCache"):
            use()
    with pytest.raises(ArgumentError, match="join: states is empty"):
        nn.states.join([])
