"""`ember quantize`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.data.text import Vocabulary
from ember_ml.nn.layers import QuantizedDense
from ember_ml.nn.models import LanguageModel
from ember_ml.nn.tensor import array
from tests.unit.cli.commands import ember

TEXT = "the quick brown fox jumps over the lazy dog. " * 4


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a small language model and its vocabulary."""
    vocabulary = Vocabulary.of(TEXT)
    ops.random.set_seed(0)
    model = LanguageModel("attention swiglu", vocabulary.vocab_size, 32)
    ember_ml.save(model, tmp_path / "model")
    (tmp_path / "model" / "vocab.json").write_text(vocabulary.to_json())
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path


def bits_per_character(model) -> float:
    """Compute the quality by hand, over windows of 32 characters."""
    ids = np.array(Vocabulary.of(TEXT).encode(TEXT))
    count = (len(ids) - 1) // 32
    windows, targets = ids[: count * 32].reshape(-1, 32), ids[1 : count * 32 + 1].reshape(-1, 32)
    logits = model(array(windows)).numpy().astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return float(-np.take_along_axis(logs, targets[..., None], -1).mean() / np.log(2.0))


@pytest.mark.parametrize("bits", [8, 4])
def test_memory_and_quality(folder, bits, backend):
    words = ("quantize", folder / "model", folder / "small", "--bits", bits, "--group-size", 32)
    words += ("--data", folder / "text.txt", "--seq-len", 32)
    data = json.loads(ember(*words, "--json").stdout)
    small, model = ember_ml.load(folder / "small"), ember_ml.load(folder / "model")
    layers = [module for module in small.modules() if isinstance(module, QuantizedDense)]
    assert len(layers) == len(data["quantized"]) == 4
    assert {layer.bits for layer in layers} == {bits}
    assert {layer.group_size for layer in layers} == {32}
    assert data["bytes_before"] == model.num_bytes()
    assert data["bytes_after"] == small.num_bytes()
    assert data["unit"] == "bits per character"
    assert data["before"] == pytest.approx(bits_per_character(model), abs=1e-3)
    assert data["after"] == pytest.approx(bits_per_character(small), abs=1e-3)
    assert data["before"] != data["after"]


def test_the_result_generates_text(folder):
    lines = ember("quantize", folder / "model", folder / "small", "--embeddings").stdout.split("\n")
    assert lines[0] == "5 layers with 8-bit weights in groups of 64"
    assert lines[1].startswith("memory: ")
    assert "not quantized: head (skip)" in lines
    text = ember("generate", folder / "small", "--prompt", "the", "--max-new-tokens", 5).stdout
    assert len(text.rstrip("\n")) == 8


def test_the_data_of_a_training_run(folder):
    (folder / "run.yaml").write_text(
        "model: {type: models/language_model, layers: swiglu}\n"
        "data: {text: {path: text.txt, seq_len: 16}}\nout: run\n"
    )
    words = ("quantize", folder / "model", folder / "small", "--data", folder / "run.yaml")
    assert "\nbits per character: " in ember(*words).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model", "model"], "is the checkpoint to quantize"),
        (["none", "small"], "is not a checkpoint"),
        (["model", "small", "--bits", 3], "bits must be 4 or 8, not 3"),
        (["model", "small", "--skip", "backbon"], "matches no module"),
        (["bare", "small", "--data", "text.txt"], "has no vocab.json or tokenizer.json"),
        (["model", "small", "--data", "other.txt"], "other.txt"),
    ],
)
def test_errors(folder, words, message, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "other.txt").write_text("the cat\u00e9")
    ember_ml.save(LanguageModel("swiglu", 8, 32), folder / "bare")
    assert message in ember("quantize", *words, code=2).stderr
    assert not (folder / "small").exists()
