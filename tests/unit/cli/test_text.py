"""Text: `ember train` of a file, `ember generate`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import ember_ml
from ember_ml._core.errors import ArgumentError
from ember_ml.data.text import Tokenizer, TokenWindows, Vocabulary, VocabularyError
from tests.unit.cli.commands import ember, ember_json

TEXT = "to be or not to be, that is the question\n" * 12
RUN = """
model: {type: language_model, layers: gru, hidden_size: 16}
data: {text: {path: text.txt, seq_len: 16}}
trainer: {learning_rate: 2e-2}
batch_size: 4
epochs: 2
out: out
"""
EXAMPLE = Path(__file__).parents[3] / "examples" / "training" / "train_text.yaml"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "run.yaml").write_text(RUN)
    (tmp_path / "sub" / "text.txt").write_text(TEXT)
    return tmp_path


@pytest.fixture
def trained(folder):
    return ember_json("train", "sub/run.yaml", "--backend", "numpy")


def test_vocabulary(tmp_path):
    vocabulary = Vocabulary.of("héllo\n")
    assert vocabulary.tokens == sorted("hélo\n")
    assert vocabulary.decode(vocabulary.encode("hello".replace("e", "é"))) == "héllo"
    (tmp_path / "vocab.json").write_text(vocabulary.to_json(), encoding="utf-8")
    assert Vocabulary.read(tmp_path / "vocab.json").tokens == vocabulary.tokens
    with pytest.raises(VocabularyError, match=r"here: 'x' \(at 1\) is not among the 5 characters"):
        vocabulary.encode("hxy", "here")
    (tmp_path / "vocab.json").write_text('{"level": "char"}')
    with pytest.raises(VocabularyError, match="is not a vocabulary"):
        Vocabulary.read(tmp_path / "vocab.json")


def test_windows():
    windows = TokenWindows(list(range(11)), 3)
    assert len(windows) == 3
    inputs, targets = windows.batch([2, 0])
    assert inputs.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert targets.tolist() == [[7, 8, 9], [1, 2, 3]]
    with pytest.raises(ArgumentError, match="3 tokens are too few"):
        TokenWindows([1, 2, 3], 3)


def test_training_learns_the_text(folder):
    found = ember_json("train", "sub/run.yaml", "epochs=25", "--backend", "numpy")
    assert found["val_loss"] < 0.5 * math.log(len(set(TEXT)))  # half the loss of a uniform guess
    text = ember("generate", "out", "--prompt", "to be or", "--temperature", "0",
                 "--max-new-tokens", "7", "--backend", "numpy").stdout  # fmt: skip
    assert text == "to be or not to\n"


def test_generate_is_the_models_own(trained, backend):
    vocabulary = Vocabulary.of(TEXT)
    assert Vocabulary.read(Path("out/vocab.json")).tokens == vocabulary.tokens
    prompt = vocabulary.encode("not")
    options = {"temperature": 1.0, "top_k": 5, "top_p": 0.9, "seed": 4}
    model = ember_ml.load("out/last")
    expected = model.generate(prompt, 12, **options).tolist()[3:]
    words = ("--max-new-tokens", 12, "--temperature", 1, "--top-k", 5, "--top-p", 0.9, "--seed", 4)
    found = ember_json("generate", "out", "--prompt", "not", *words)
    assert found["tokens"] == expected
    assert found["text"] == vocabulary.decode(expected)
    tokens = ",".join(map(str, prompt))
    streamed = ember("generate", "out/last", "--tokens", tokens, *words).stdout
    assert streamed == f"not{vocabulary.decode(expected)}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prompt", "é"], "--prompt: 'é' (at 0) is not among the 15 characters"),
        (["--tokens", "1,x"], "--tokens must be integers such as 1,2,3, not '1,x'"),
        (["--tokens", "99"], "the vocabulary has those from 0 to 14"),
        (["--tokens", "1", "--prompt", "a"], "pass --prompt or --tokens, not both"),
    ],
)
def test_prompts_that_mean_nothing(trained, words, message):
    assert message in ember("generate", "out", *words, "--backend", "numpy", code=2).stderr


def test_folders_that_hold_no_language_model(trained):
    assert "nowhere is not a checkpoint" in ember("generate", "nowhere", code=2).stderr
    ember_ml.save(ember_ml.nn.layers.Dense(2, 2), "dense")
    assert "holds a Dense, not a language model" in ember("generate", "dense", code=2).stderr
    model = ember_ml.load("out/last")
    model.tokenizer = None
    model.save("plain/model")
    assert "has no vocab.json" in ember("generate", "plain/model", "--prompt", "a", code=2).stderr


def test_going_on_keeps_the_vocabulary(trained):
    Path("sub/text.txt").write_text(TEXT + "Zzz")
    words = ("train", "sub/run.yaml", "epochs=3", "--resume", "--backend", "numpy")
    assert "'Z' (at 492) is not among the 15" in ember(*words, code=2).stderr


TOKENIZERS = {
    "bpe": "{kind: bpe, vocab_size: 280}",
    "byte": "{kind: byte}",
    "wordpiece": "{kind: wordpiece, vocab_size: 60, lowercase: true}",
    "char": "{kind: char, vocab_size: 40}",
}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_trained_tokenizer_is_used_by_generate(folder, kind):
    words = ("train", "sub/run.yaml", f"data.text.tokenizer={TOKENIZERS[kind]}")
    found = ember_json(*words, "epochs=25", "--backend", "numpy")
    tokenizer = Tokenizer.load("out/tokenizer.json")
    assert found["val_loss"] < 0.5 * math.log(tokenizer.vocab_size)
    assert not Path("out/vocab.json").exists()
    assert ember_ml.load("out/last").config.vocab_size == tokenizer.vocab_size
    options = ("--temperature", "0", "--max-new-tokens", "7", "--backend", "numpy")
    text = ember("generate", "out", "--prompt", "to be or", *options).stdout
    assert text.startswith("to be or not to")
    data = ember_json("generate", "out/last", "--prompt", "to be or", *options)
    assert data["prompt"] + data["text"] + "\n" == text
    assert data["prompt_tokens"] == tokenizer.encode("to be or")
    assert len(ember_json("generate", "out", *options)["tokens"]) == 7
    before = Path("out/tokenizer.json").read_bytes()
    other = ("data.text.tokenizer={kind: char, lowercase: true}", "epochs=26", "--resume")
    assert ember_json(*words[:2], *other, "--backend", "numpy")["epoch"] == 26
    assert Path("out/tokenizer.json").read_bytes() == before


def test_a_tokenizer_is_not_trained_on_the_validation_part(folder):
    Path("sub/text.txt").write_text(TEXT + "zq" * (len(TEXT) // 4))
    options = ("data.text.tokenizer={kind: bpe, vocab_size: 300}", "validation=0.34", "epochs=1")
    ember_json("train", "sub/run.yaml", *options, "--backend", "numpy")
    tokenizer = Tokenizer.load("out/tokenizer.json")
    assert tokenizer.token_to_id("to") is not None
    assert tokenizer.token_to_id("zq") is None


def test_a_tokenizer_file_is_loaded(folder):
    Tokenizer.train([TEXT], "bpe", 270).save(folder / "sub" / "mine.json")
    words = ("train", "sub/run.yaml", "data.text.tokenizer=mine.json", "--backend", "numpy")
    ember_json(*words)
    assert Tokenizer.load("out/tokenizer.json") == Tokenizer.load("sub/mine.json")
    (folder / "sub" / "mine.json").write_text("{}")
    message = ember(*words, "--overwrite", code=2).stderr
    assert "mine.json is not a tokenizer" in message


def test_a_tokenizer_of_the_user_is_not_overwritten(folder):
    (folder / "out").mkdir()
    (folder / "out" / "tokenizer.json").write_text("mine")
    words = ("train", "sub/run.yaml", "data.text.tokenizer=byte", "--backend", "numpy")
    assert "is another tokenizer" in ember(*words, code=2).stderr
    assert (folder / "out" / "tokenizer.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("{kind: bpe}", "vocab_size: is missing for a tokenizer of kind bpe"),
        ("{kind: bpf, vocab_size: 300}", "data.text.tokenizer.kind"),
        ("{kind: bpe, vocab_size: 10}", "vocab_size must be at least 259, not 10"),
        ("{path: none.json}", "there is no file none.json"),
        ("{path: none.json, kind: bpe}", "takes no other settings"),
    ],
)
def test_errors_of_tokenizers(folder, tokenizer, message):
    words = ("train", "sub/run.yaml", f"data.text.tokenizer={tokenizer}")
    assert message in ember(*words, code=2).stderr


@pytest.mark.parametrize("content", [b"ab\xff\xfecd\n" * 20, b""])
def test_a_text_that_is_none(folder, content):
    Path("sub/text.txt").write_bytes(content)
    message = ember("train", "sub/run.yaml", code=2).stderr
    assert "text.txt" in message
    assert ("not valid utf-8" in message) == bool(content)


def test_another_file_for_validation(folder):
    Path("other.txt").write_text("that is to be\n" * 4)
    found = ember_json("train", "sub/run.yaml", "validation=other.txt", "--backend", "numpy")
    assert "val_loss" in found


def test_the_example_trains(folder):
    words = ("epochs=1", "model.hidden_size=8", "model.layers=gru", "--backend", "numpy")
    found = ember_json("train", EXAMPLE, *words)
    assert found["checkpoint"] == "runs/text/last"
    assert found["val_loss"] < 4.6


def test_options_of_generate_are_those_of_the_model(trained):
    model = ember_ml.load("out/last")
    vocabulary = Vocabulary.of(TEXT)
    prompt, at = vocabulary.encode("to be"), ("generate", "out", "--prompt", "to be", "--json")
    base = ("--max-new-tokens", 9, "--seed", 1, "--backend", "numpy")
    stop = vocabulary.encode("o")[0]
    cases = [
        (["--temperature", 1, "--min-p", 0.3], {"temperature": 1.0, "min_p": 0.3}),
        (["--temperature", 0, "--repetition-penalty", 3], {"repetition_penalty": 3.0}),
        (["--temperature", 0, "--presence-penalty", 2], {"presence_penalty": 2.0}),
        (["--temperature", 0, "--frequency-penalty", 2], {"frequency_penalty": 2.0}),
        (["--temperature", 0, "--logit-bias", "3:9", "--logit-bias", "2:-1"],
         {"logit_bias": {3: 9.0, 2: -1.0}}),
        (["--temperature", 0, "--eos", stop, "--min-new-tokens", 3],
         {"eos": stop, "min_new_tokens": 3}),
        (["--num-beams", 3, "--length-penalty", 0.5, "--early-stopping", "yes"],
         {"num_beams": 3, "length_penalty": 0.5, "early_stopping": True}),
        (["--draft", "out", "--draft-tokens", 2],
         {"temperature": 0.8, "draft": model, "draft_tokens": 2}),
        (["--choice", "or", "--choice", "that"],
         {"temperature": 0.8, "allowed": [vocabulary.encode("or"), vocabulary.encode("that")]}),
    ]  # fmt: skip
    with ember_ml.use_backend("numpy"):
        for words, options in cases:
            expected = model.complete(prompt, 9, seed=1, **options)
            found = ember_json(*at, *base, *words)
            assert found["tokens"] == expected.tokens[0], words
            assert found["finish_reason"] == expected.finish_reason[0]
            assert found["text"] == vocabulary.decode(expected.tokens[0])
            assert len(found["log_probs"]) == len(found["tokens"])


def test_several_samples_and_stop_strings(trained):
    base = ("generate", "out", "--prompt", "to be", "--max-new-tokens", 30, "--backend", "numpy")
    samples = ember_json(*base, "--num-samples", 3, "--seed", 0)["samples"]
    assert len({sample["text"] for sample in samples}) == 3
    printed = ember(*base, "--num-samples", 3, "--seed", 0).stdout
    assert printed == "".join(f"to be{sample['text']}\n" for sample in samples)
    text = ember(*base, "--seed", 0).stdout
    stop = text[8:10]
    short = ember(*base, "--seed", 0, "--stop", stop, "--stop", "zzz").stdout
    assert short == text[: text.index(stop, 5)] + "\n"
    tokens = ember_json("generate", "out", "--tokens", "1,2", *base[4:], "--temperature", 0)
    assert len(tokens["tokens"]) == 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--logit-bias", "x"], "--logit-bias must be a token and a number such as 5:-2.5"),
        (["--eos", "x"], "--eos must be integers such as 1,2,3"),
        (["--choice", "é"], "--choice: 'é' (at 0) is not among the 15 characters"),
        (["--repetition-penalty", "0"], "repetition_penalty=0.0 must be above 0"),
        (["--num-beams", "2", "--temperature", "1"], "pass temperature=0, not 1.0"),
    ],
)
def test_options_that_mean_nothing(trained, words, message):
    base = ("generate", "out", "--prompt", "to", "--backend", "numpy")
    assert message in ember(*base, *words, code=2).stderr
