"""Text in and out of language models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import ember_ml
from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError
from ember_ml.data.text import Tokenizer, Vocabulary
from ember_ml.nn import models
from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.models.decoding.text import cut
from ember_ml.nn.tensor import array

TEXTS = ["the cat sat on the mat", "naïve café, größer, 東京 🙂"]
TOKENIZERS = {
    "bpe": lambda: Tokenizer.train(TEXTS, "bpe", 280),
    "byte": lambda: Tokenizer.train(TEXTS, "byte"),
    "char": lambda: Tokenizer.train(TEXTS, "char"),
    "vocabulary": lambda: Vocabulary.of("".join(TEXTS)),
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return TOKENIZERS[request.param]()


def language_model(tokenizer: Any) -> Any:
    ops.random.set_seed(0)
    model = models.LanguageModel("gru", tokenizer.vocab_size, 16).eval()
    model.tokenizer = tokenizer
    return model


def test_text_is_that_of_the_tokens(tokenizer: Any, backend: str) -> None:
    model = language_model(tokenizer)
    options: dict[str, Any] = {"temperature": 1.5, "seed": 3}
    for prompt in ("the cat", "café"):
        ids = tokenizer.encode(prompt)
        tokens = model.generate(ids, 12, **options, eos=None).tolist()[len(ids) :]
        expected = "".join(tokenizer.decode_stream(tokens, after=ids))
        assert model.generate_text(prompt, 12, **options, eos=None) == expected
        pieces = list(model.stream_text(prompt, 12, **options, eos=None))
        assert "".join(pieces) == expected
        assert len(pieces) > 1
    texts = model.generate_text(["the cat", "t"], 6)
    assert texts == [model.generate_text(text, 6) for text in ("the cat", "t")]


def test_the_tokenizer_is_saved_with_the_model(
    tokenizer: Any, backend: str, tmp_path: Path
) -> None:
    model = language_model(tokenizer)
    model.save(tmp_path / "model")
    read = ember_ml.load(tmp_path / "model")
    assert isinstance(read, models.LanguageModel)
    assert type(read.tokenizer) is type(tokenizer)
    assert read.tokenizer.to_files() == tokenizer.to_files()
    assert read.generate_text("the", 8) == model.generate_text("the", 8)
    model.tokenizer = None
    model.save(tmp_path / "model")
    assert models.LanguageModel.load(tmp_path / "model").tokenizer is None
    assert models.LanguageModel.load(tmp_path / "model", into=read).tokenizer is None


class Sequel(models.Generator):
    """Model that continues a prompt with a text."""

    def __init__(self, text: str, prompt: str, kind: str = "byte", eos: bool = False) -> None:
        self.tokenizer: Any = TOKENIZERS[kind]()
        self.vocab_size = self.tokenizer.vocab_size
        self.sequel = [*self.tokenizer.encode(text), *([self.tokenizer.eos_id] if eos else [])]
        self.offset = len(self.tokenizer.encode(prompt))
        after = array([*self.sequel, self.sequel[-1]])
        self.table = nn.Parameter(50.0 * ops.one_hot(after, self.vocab_size).astype("float32"))

    def initial_state(self, batch: int) -> Any:
        return array([-self.offset] * batch)

    def step(self, tokens: Any, state: Any) -> Any:
        at = ops.clip(state + 1, 0, len(self.sequel))
        return ops.embedding(self.table, at), state + 1


def test_pieces_are_complete_characters(backend: str) -> None:
    text = "größer 東京 🙂!"
    model = Sequel(text, "ab")
    count = len(text.encode())
    pieces = list(model.stream_text("ab", count))
    assert pieces == list(text)  # several tokens for each character beyond ASCII
    assert model.generate_text("ab", count) == text
    assert model.generate_text("ab", count - 2).startswith("größer 東京 ")


def test_the_tokenizer_ends_a_text(backend: str) -> None:
    model = Sequel("done", "ab", "bpe", eos=True)
    assert model.generate_text("ab", 50) == "done"
    assert "".join(model.stream_text("ab", 50)) == "done"
    found = model.complete(model.tokenizer.encode("ab"), 50, eos=model.tokenizer.eos_id)
    assert found.tokens[0][-1] == model.tokenizer.eos_id
    assert found.finish_reason == ["stop"]
    long = model.complete(model.tokenizer.encode("ab"), 50)
    assert len(long.tokens[0]) == 50


@pytest.mark.parametrize("kind", ["byte", "bpe"])
def test_stop_strings(kind: str, backend: str) -> None:
    model = Sequel("one two; three. four", "ab", kind)
    ids = model.tokenizer.encode("ab")
    for stop, expected in (
        ("; th", "one two"),
        (["four", " three"], "one two;"),
        ("never", "one two; three. four"),
        (["e t", "two"], "on"),
    ):
        count = len(model.sequel)
        assert model.generate_text("ab", count, stop=stop) == expected
        assert "".join(model.stream_text("ab", count, stop=stop)) == expected
        for options in ({}, {"num_beams": 2}, {"draft": model}):
            found = model.complete([ids, ids], count, stop=stop, **options)
            assert found.finish_reason == ["length" if stop == "never" else "stop"] * 2
            assert model.tokenizer.decode(found.tokens[0]).startswith(expected)
            assert len(found.tokens[0]) <= count


def test_stop_strings_do_not_decode_a_long_text_at_each_token(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Sequel("tick " * 40 + "tock", "ab")
    decode, decoded = type(model.tokenizer).decode, []

    def counting(self, ids, *args, **options):
        decoded.append(len(ids))
        return decode(self, ids, *args, **options)

    monkeypatch.setattr(type(model.tokenizer), "decode", counting)
    found = model.complete(model.tokenizer.encode("ab"), len(model.sequel) + 5, stop="tock")
    assert found.finish_reason == ["stop"]
    assert found.tokens == [model.sequel]
    assert sorted(decoded)[-2:] == [32 + 4 * len("tock"), len(model.sequel)]


def test_text_that_may_become_a_stop_string_is_held_back() -> None:
    assert list(cut(["ab", "c", "d", "e"], ["cde"])) == ["ab"]
    assert list(cut(["ab", "c", "d", "f"], ["cde"])) == ["ab", "cdf"]
    assert list(cut(["abab", "abc"], ["ababc"])) == ["ab"]
    assert list(cut(["x", "y"], [])) == ["x", "y"]
    assert list(cut(["a", "b"], ["abc"])) == ["ab"]


def test_errors(backend: str, tmp_path: Path) -> None:
    model = language_model(TOKENIZERS["char"]())
    with pytest.raises(ArgumentError, match="prompt 1 has no tokens: ''"):
        model.generate_text(["t", ""])
    with pytest.raises(ArgumentError, match="the prompt has no tokens"):
        model.stream_text("")
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "tokenizer.json"
    path.write_bytes(b"{}")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        ember_ml.load(tmp_path / "model")
    assert model.generate_text([]) == []
    model.tokenizer = None
    with pytest.raises(ArgumentError, match=r"has no tokenizer; assign model\.tokenizer"):
        model.generate_text("t")


def test_text_of_a_transformers_folder(tmp_path: Path, backend: str) -> None:
    ours = Tokenizer.train(TEXTS, "bpe", 280)
    ours.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=ours.vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    peer = transformers.LlamaForCausalLM(config).eval()
    peer.save_pretrained(tmp_path)
    model = ember_ml.load(tmp_path)
    source = theirs("the cat", return_tensors="pt").input_ids
    tokens = peer.generate(source, max_new_tokens=12, do_sample=False)[0, source.shape[1] :]
    expected = theirs.decode(tokens, skip_special_tokens=True)
    assert model.generate_text("the cat", 12, eos=None) == expected
