"""Text: `ember train` of a file, `ember generate`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import ember_ml
from ember_ml._core.errors import ArgumentError
from ember_ml.cli.text import TextWindows, Vocabulary, VocabularyError
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
    windows = TextWindows(list(range(11)), 3)
    assert len(windows) == 3
    inputs, targets = windows.batch([2, 0])
    assert inputs.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert targets.tolist() == [[7, 8, 9], [1, 2, 3]]
    with pytest.raises(ArgumentError, match="3 tokens are too few"):
        TextWindows([1, 2, 3], 3)


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
    Path("out/vocab.json").unlink()
    assert "has no vocab.json" in ember("generate", "out", "--prompt", "a", code=2).stderr


def test_going_on_keeps_the_vocabulary(trained):
    Path("sub/text.txt").write_text(TEXT + "Zzz")
    words = ("train", "sub/run.yaml", "epochs=3", "--resume", "--backend", "numpy")
    assert "'Z' (at 492) is not among the 15" in ember(*words, code=2).stderr


def test_another_file_for_validation(folder):
    Path("other.txt").write_text("that is to be\n" * 4)
    found = ember_json("train", "sub/run.yaml", "validation=other.txt", "--backend", "numpy")
    assert "val_loss" in found


def test_the_example_trains(folder):
    words = ("epochs=1", "model.hidden_size=8", "model.layers=gru", "--backend", "numpy")
    found = ember_json("train", EXAMPLE, *words)
    assert found["checkpoint"] == "runs/text/last"
    assert found["val_loss"] < 4.6
