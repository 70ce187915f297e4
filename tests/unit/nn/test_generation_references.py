"""Generation against transformers: logits processors, greedy decoding, beam search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.generation import logits_process

from ember_ml.nn import tensor
from ember_ml.nn.models.convert import convert
from ember_ml.nn.models.decoding.logits import LogitsProcessor
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.sampling import Sampler

VOCABULARY = 32
PROMPTS = [[1, 2, 3, 4, 5], [9, 30, 7, 22, 4], [0, 0, 17, 3, 8]]
SPECIAL = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
FAMILIES = {
    "gpt2": (
        transformers.GPT2Config,
        {"n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 2},
    ),
    "llama": (
        transformers.LlamaConfig,
        {
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32,
        },
    ),
}


def random_model(name: str) -> Any:
    """Return a model of transformers with weights at which the tokens differ."""
    make, values = FAMILIES[name]
    model = transformers.AutoModelForCausalLM.from_config(
        make(vocab_size=VOCABULARY, **values, **SPECIAL)
    )
    torch.manual_seed(0)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            around = 1.0 if "norm" in key or "ln_" in key else 0.0
            weight.copy_(around + 0.3 * torch.randn_like(weight))
    return model.eval()


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a model of transformers, and the folder that it is saved in."""
    model = random_model(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    return model, folder


def theirs(model: Any, **options: Any) -> tuple[list[list[int]], Any]:
    """Return the new tokens of transformers without padding, and the whole output."""
    tokens = torch.tensor(PROMPTS)
    eos = options.pop("eos", None)
    out = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        do_sample=False,
        eos_token_id=eos,
        pad_token_id=None if eos is None else 31,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    rows = out.sequences[:, tokens.shape[1] :].tolist()
    stops = [] if eos is None else np.atleast_1d(eos).tolist()
    ends = [next((at + 1 for at, x in enumerate(row) if x in stops), len(row)) for row in rows]
    return [row[:end] for row, end in zip(rows, ends, strict=True)], out


def ours(folder: Path, **options: Any) -> Any:
    return convert(folder).complete(PROMPTS, options.pop("max_new_tokens"), **options)


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize(
    "options",
    [
        {"length_penalty": 1.0},
        {"length_penalty": 2.0, "eos": [22, 25]},
        {"length_penalty": 0.0, "eos": [3, 11, 27]},
        {"length_penalty": -1.0, "eos": [3, 11, 27], "min_new_tokens": 2},
        {"length_penalty": 1.0, "eos": [5, 11, 20, 21, 3, 8, 9], "repetition_penalty": 1.4},
    ],
)
def test_beam_search(
    family: Any, options: dict[str, Any], early_stopping: Any, backend: str
) -> None:
    model, folder = family
    options = {"num_beams": 4, "max_new_tokens": 8, "early_stopping": early_stopping, **options}
    expected, out = theirs(model, num_return_sequences=2, **options)
    found = ours(folder, num_samples=2, **options)
    assert found.tokens == expected
    np.testing.assert_allclose(found.scores, out.sequences_scores.numpy(), rtol=1e-4)
    if "eos" in options:
        assert found.finish_reason.count("stop") == sum(
            tokens[-1] in np.atleast_1d(options["eos"]) for tokens in expected
        )


def test_beam_search_finds_better_sequences_than_greedy(family: Any, backend: str) -> None:
    model = convert(family[1])
    greedy = model.complete(PROMPTS, 6, log_probs=True)
    beams = model.complete(PROMPTS, 6, log_probs=True, num_beams=5)
    totals = [[sum(row) for row in each.log_probs] for each in (greedy, beams)]
    assert all(b >= a - 1e-5 for a, b in zip(*totals, strict=True))
    assert sum(totals[1]) > sum(totals[0]) + 1e-3
    np.testing.assert_allclose(beams.scores, [total / 6 for total in totals[1]], rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 0.8},
        {"repetition_penalty": 1.3, "eos": [3, 11, 27], "min_new_tokens": 4},
    ],
)
def test_greedy(family: Any, options: dict[str, Any], backend: str) -> None:
    model, folder = family
    expected, _ = theirs(model, max_new_tokens=8, **options)
    assert ours(folder, max_new_tokens=8, **options).tokens == expected


def test_log_probs(family: Any, backend: str) -> None:
    model, folder = family
    found = ours(folder, max_new_tokens=5, log_probs=True, repetition_penalty=2.0)
    for prompt, tokens, values in zip(found.prompts, found.tokens, found.log_probs, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
        expected = torch.log_softmax(logits, -1)[range(5), tokens].numpy()
        np.testing.assert_allclose(values, expected, atol=1e-4)


def logits() -> Any:
    return np.random.default_rng(0).normal(0, 3, (6, VOCABULARY)).astype(np.float32)


@pytest.mark.parametrize(
    ("options", "processor"),
    [
        ({"top_k": 1}, logits_process.TopKLogitsWarper(1)),
        ({"top_k": 7}, logits_process.TopKLogitsWarper(7)),
        ({"top_k": 99}, logits_process.TopKLogitsWarper(99)),
        ({"top_p": 0.01}, logits_process.TopPLogitsWarper(0.01)),
        ({"top_p": 0.7}, logits_process.TopPLogitsWarper(0.7)),
        ({"top_p": 1.0}, logits_process.TopPLogitsWarper(1.0)),
        ({"min_p": 0.0}, logits_process.MinPLogitsWarper(0.0)),
        ({"min_p": 0.05}, logits_process.MinPLogitsWarper(0.05)),
        ({"min_p": 1.0}, logits_process.MinPLogitsWarper(1.0)),
    ],
)
@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.5])
def test_filters(options: dict[str, Any], processor: Any, temperature: float, backend: str) -> None:
    x = logits()
    expected = processor(None, torch.tensor(x / temperature)).numpy()
    found = Sampler(temperature, **options).filtered(tensor.array(x)).numpy()
    assert (np.isinf(found) == np.isinf(expected)).all()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_all_filters_in_the_order_of_transformers(backend: str) -> None:
    x = logits()
    expected = torch.tensor(x) / 1.5
    warpers = logits_process
    for warper in (
        warpers.TopKLogitsWarper(12),
        warpers.TopPLogitsWarper(0.9),
        warpers.MinPLogitsWarper(0.08),
    ):
        expected = warper(None, expected)
    found = Sampler(1.5, 12, 0.9, min_p=0.08).filtered(tensor.array(x)).numpy()
    assert 6 < np.isfinite(found).sum() < 6 * 12
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)


PENALTIES = [
    ({"repetition_penalty": 1.8}, logits_process.RepetitionPenaltyLogitsProcessor(1.8)),
    ({"repetition_penalty": 0.4}, logits_process.RepetitionPenaltyLogitsProcessor(0.4)),
    (
        {"logit_bias": {3: -2.5, 31: 4.0}},
        logits_process.SequenceBiasLogitsProcessor([[[3], -2.5], [[31], 4.0]]),
    ),
    (
        {"eos": [2, 9], "min_new_tokens": 5},
        logits_process.MinNewTokensLengthLogitsProcessor(3, 5, [2, 9], device="cpu"),
    ),
]


@pytest.mark.parametrize(("options", "processor"), PENALTIES)
def test_penalties(options: dict[str, Any], processor: Any, backend: str) -> None:
    x = logits()
    seen = np.random.default_rng(1).integers(0, VOCABULARY, (6, 7))
    expected = processor(torch.tensor(seen), torch.tensor(x)).numpy()
    assert (expected != x).any()
    prompts = tensor.array(seen[:, :3])
    ours = LogitsProcessor(Options.of(options, VOCABULARY), VOCABULARY, prompts)
    history = ours.start(prompts)
    for at in range(3, 7):
        history = ours.add(history, tensor.array(seen[:, at]))
    np.testing.assert_allclose(ours(tensor.array(x), history, 4).numpy(), expected, rtol=1e-6)


def test_presence_and_frequency_count_new_tokens_only(backend: str) -> None:
    x = logits()
    new = np.random.default_rng(1).integers(0, 6, (6, 9))
    options = Options.of({"presence_penalty": 0.75, "frequency_penalty": -0.25}, VOCABULARY)
    prompts = tensor.array(np.full((6, 2), 30))
    ours = LogitsProcessor(options, VOCABULARY, prompts)
    history = ours.start(prompts)
    for at in range(9):
        history = ours.add(history, tensor.array(new[:, at]))
    counts = np.stack([np.bincount(row, minlength=VOCABULARY) for row in new])
    expected = x - 0.75 * (counts > 0) + 0.25 * counts
    np.testing.assert_allclose(ours(tensor.array(x), history, 9).numpy(), expected, rtol=1e-5)
