"""Speculative decoding has the distribution of the model alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml.backend import available, use_backend
from ember_ml.nn import models
from ember_ml.nn.models.sampling import row_seed
from ember_ml.nn.tensor import array
from tests.robustness.scale import spread

LAYERS = ("attention swiglu", "attention[window=3]", "gru", "mamba swiglu", "rwkv", "delta_net")
VOCABULARY = 4


def language_model(layers: str, seed: int, vocab_size: int = 32) -> Any:
    ops.random.set_seed(seed)
    return models.LanguageModel(layers, vocab_size, 16).eval()


@pytest.mark.parametrize(
    ("layers", "draft_tokens"), spread(list(itertools.product(LAYERS, [1, 4, 20])), 2)
)
def test_greedy_is_that_of_the_model(layers: str, draft_tokens: int, backend: str) -> None:
    model = language_model(layers, 0)
    prompts = [[1, 2, 3], [4]]
    options: dict[str, Any] = {"frequency_penalty": 0.3, "eos": 5}
    expected = model.complete(prompts, 11, **options)
    other = language_model("gru", 1)
    for draft in (model, other):
        options |= {"draft": draft, "draft_tokens": draft_tokens}
        assert model.complete(prompts, 11, **options) == expected
        streamed = model.stream([4], 11, **options)
        assert [int(token[0]) for token in streamed] == expected.tokens[1]


def test_greedy_without_a_cache(backend: str) -> None:
    model, draft = language_model("gru", 0), language_model("mamba", 1)
    expected = model.generate([1, 2], 7).tolist()
    assert model.generate([1, 2], 7, draft=draft, cache=False).tolist() == expected


@pytest.mark.parametrize("layers", LAYERS)
def test_a_row_does_not_depend_on_the_others(layers: str, backend: str) -> None:
    model, draft = language_model(layers, 0), language_model("gru", 1)
    prompts = [[1, 2, 3], [4], [5, 6], [7]]
    options: dict[str, Any] = {"temperature": 1.0, "draft": draft, "draft_tokens": 3, "eos": [9, 5]}
    found = model.complete(prompts, 9, seed=2, log_probs=True, **options)
    assert len({len(tokens) for tokens in found.tokens}) > 1
    for row, prompt in enumerate(prompts):
        alone = model.complete(prompt, 9, seed=row_seed(2, row), log_probs=True, **options)
        assert alone.tokens[0] == found.tokens[row]
        assert alone.finish_reason[0] == found.finish_reason[row]
        np.testing.assert_allclose(alone.log_probs[0], found.log_probs[row], atol=1e-4)


def test_a_good_draft_is_accepted(backend: str) -> None:
    """The model proposes its own tokens, and all of them are accepted."""
    model = language_model("attention swiglu", 0)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    model.generate([1, 2], 15, draft=model, draft_tokens=4, temperature=1.0, seed=0)
    assert len(calls) == 3  # 3 rounds of 4 proposed tokens and one more


def exact(model: Any, prompt: list[int], count: int, **options: float) -> np.ndarray:
    """Return the probabilities of all continuations."""
    temperature = options.get("temperature", 1.0)
    out = []
    for tokens in itertools.product(range(VOCABULARY), repeat=count):
        logits = model(array([[*prompt, *tokens]])).numpy()[0].astype(np.float64)
        total = 1.0
        for at, token in enumerate(tokens):
            scores = logits[len(prompt) - 1 + at].copy()
            scores -= options.get("presence_penalty", 0.0) * np.isin(range(VOCABULARY), tokens[:at])
            odds = np.exp(scores / temperature)
            total *= odds[token] / odds.sum()
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0},
        {"temperature": 0.7, "presence_penalty": 1.0},
    ],
)
@pytest.mark.parametrize("draft_tokens", [1, 4])
def test_the_distribution_is_that_of_the_model(options: dict[str, Any], draft_tokens: int) -> None:
    """Chi-square test of all continuations, with a fixed seed."""
    backend = available()[0]
    number, count = 1200, 3
    with use_backend(backend):
        model = language_model("gru", 0, VOCABULARY)
        draft = language_model("gru", 5, VOCABULARY)
        truth = exact(model, [1, 2], count, **options)
        assert np.abs(truth - exact(draft, [1, 2], count, **options)).sum() > 0.3
        for seed, more in ((1, {"draft": draft, "draft_tokens": draft_tokens}), (2, {})):
            found = model.complete([1, 2], count, num_samples=number, seed=seed, **options, **more)
            codes = np.array(found.tokens) @ (VOCABULARY ** np.arange(count - 1, -1, -1))
            counts = np.bincount(codes, minlength=len(truth))
            is_rare = number * truth < 5  # the test needs larger cells: rare ones are one cell
            expected = number * np.append(truth[~is_rare], truth[is_rare].sum())
            observed = np.append(counts[~is_rare], counts[is_rare].sum())
            statistic = ((observed - expected) ** 2 / expected).sum()
            freedom = len(expected) - 1
            assert freedom > 10
            assert statistic < freedom + 3.5 * np.sqrt(2 * freedom), (more, statistic)


def test_a_draft_that_cannot_be(backend: str) -> None:
    model = language_model("gru", 0)
    with pytest.raises(ArgumentError, match="draft has 4 tokens in the vocabulary, the model has"):
        model.generate([1], draft=language_model("gru", 0, 4))
    with pytest.raises(ArgumentError, match="pass num_beams or draft, not both"):
        model.generate([1], draft=model, num_beams=2)
    short = models.LanguageModel("gru", 32, 16, positions="learned", max_length=8)
    with pytest.raises(ArgumentError, match="1 tokens and 20 new ones exceed max_length=8"):
        model.generate([1], 20, draft=short)
    other = next((each for each in available() if each != backend), None)
    if other is not None:
        with use_backend(other):
            elsewhere = language_model("gru", 1)
        with pytest.raises(ArgumentError, match=f"the model is on {backend}, the draft on {other}"):
            model.generate([1], draft=elsewhere)
