"""Corpora of tokens in memory-mapped files."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from ember_ml._core.errors import ArgumentError
from ember_ml.data import DataFileError, DataLoader
from ember_ml.data.text import LineDataset, PackedTokens, Tokenizer
from ember_ml.data.text import sources as text_sources
from tests.unit.data.text.corpus import documents


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.train(documents()[:4], "bpe", 400)


@pytest.fixture(scope="module")
def byte() -> Tokenizer:
    return Tokenizer.train([], "byte")


def wide() -> Tokenizer:
    """Return a tokenizer with more tokens than uint16 can count."""
    vocabulary = {chr(0x10000 + n): n for n in range(70_000)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    return Tokenizer(tokenizer)


def test_the_file_has_every_token(bpe: Tokenizer, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(text_sources, "_CHARACTERS", 5000)  # several pieces
    path = PackedTokens.build(documents(), bpe, tmp_path / "new" / "corpus.tokens")
    expected = [token for text in documents() for token in (*bpe.encode(text), bpe.eos_id)]
    stored = safetensors.numpy.load_file(path)["tokens"]
    assert stored.tolist() == expected
    assert stored.dtype == np.uint16
    dataset = PackedTokens(path, 64, bpe)
    assert dataset.num_tokens == len(expected)
    assert dataset.vocab_size == 400
    assert dataset.file.documents == len(documents())
    dataset.verify()
    inputs, targets = dataset.batch([5, 0])
    assert inputs.tolist() == [expected[320:384], expected[:64]]
    assert targets.tolist() == [expected[321:385], expected[1:65]]
    assert os.listdir(path.parent) == ["corpus.tokens"]


def test_many_tokens_take_uint32(tmp_path: Path) -> None:
    tokenizer = wide()
    text = "".join(chr(0x10000 + n) for n in (3, 65_536, 69_999, 0))
    path = PackedTokens.build([text], tokenizer, tmp_path / "t", eos=False)
    assert safetensors.numpy.load_file(path)["tokens"].dtype == np.uint32
    assert PackedTokens(path, 3)[0][1].tolist() == [65_536, 69_999, 0]
    with pytest.raises(ArgumentError, match="has no EOS token; pass eos=False"):
        PackedTokens.build([text], tokenizer, tmp_path / "u")


def test_running_text_is_kept(byte: Tokenizer, tmp_path: Path) -> None:
    text = documents()[0]
    (tmp_path / "a.txt").write_text(text, "utf-8", newline="")
    for source in (tmp_path / "a.txt", str(tmp_path / "a.txt"), [tmp_path / "a.txt"]):
        path = PackedTokens.build(source, byte, tmp_path / "t", eos=False, overwrite=True)
        tokens = safetensors.numpy.load_file(path)["tokens"]
        assert byte.decode(tokens) == text


@pytest.mark.usefixtures("on_numpy")
def test_worker_processes_open_the_file(byte: Tokenizer, tmp_path: Path) -> None:
    path = PackedTokens.build(documents()[:2], byte, tmp_path / "t")
    dataset = PackedTokens(path, 32)
    assert len(pickle.dumps(dataset)) < 1000
    options = {"batch_size": 16, "shuffle": True, "seed": 3}
    expected = [x.tolist() for x, _ in DataLoader(dataset, **options)]
    workers = DataLoader(dataset, num_workers=2, worker_type="process", **options)
    assert [x.tolist() for x, _ in workers] == expected


def test_existing_files_stay(byte: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "t"
    PackedTokens.build(["abcd"], byte, path)
    before = path.read_bytes()
    with pytest.raises(DataFileError, match="exists; pass overwrite=True"):
        PackedTokens.build(["x"], byte, path)

    def failing() -> Iterator[str]:
        yield "text"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        PackedTokens.build(failing(), byte, path, overwrite=True)
    with pytest.raises(ArgumentError, match="the source has no text"):
        PackedTokens.build([], byte, path, overwrite=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t"]
    (tmp_path / "mine").write_text("thesis")
    with pytest.raises(DataFileError, match=r"mine is not a file of PackedTokens.*not overwritten"):
        PackedTokens.build(["x"], byte, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine").read_text() == "thesis"


def test_a_bad_line_leaves_nothing(byte: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    with pytest.raises(DataFileError, match=r"bad.txt, line 2: not valid utf-8"):
        PackedTokens.build(LineDataset(tmp_path / "bad.txt"), byte, tmp_path / "t")
    assert os.listdir(tmp_path) == ["bad.txt"]


def test_another_tokenizer_is_an_error(byte: Tokenizer, bpe: Tokenizer, tmp_path: Path) -> None:
    path = PackedTokens.build(["abcd"], byte, tmp_path / "t")
    PackedTokens(path, 2, byte)
    with pytest.raises(ArgumentError, match="has the tokens of another tokenizer"):
        PackedTokens(path, 2, bpe)


def test_damage(byte: Tokenizer, tmp_path: Path) -> None:
    path = PackedTokens.build(["some text"], byte, tmp_path / "t")
    content = path.read_bytes()
    with pytest.raises(ArgumentError, match=r"10 tokens are too few for a window of seq_len=10"):
        PackedTokens(path, 10)
    for damaged in (b"", content[:500], content[:-1], content + b"x", bytes(len(content))):
        path.write_bytes(damaged)
        with pytest.raises(DataFileError, match="t is not a file of PackedTokens"):
            PackedTokens(path, 2)
    path.write_bytes(content.replace(b"ember_ml.tokens.1", b"ember_ml.tokens.9"))
    with pytest.raises(DataFileError, match=r"its format is 'ember_ml.tokens.9'"):
        PackedTokens(path, 2)
    safetensors.numpy.save_file({"tokens": np.zeros(9, np.uint16)}, path)
    with pytest.raises(DataFileError, match="its format is None"):
        PackedTokens(path, 2)
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    with pytest.raises(DataFileError, match="is damaged: its checksum is wrong"):
        PackedTokens(path, 2).verify()
    path.unlink()
    with pytest.raises(DataFileError, match="there is no file"):
        PackedTokens(path, 2)


def test_memory_does_not_grow_with_the_corpus(byte: Tokenizer, tmp_path: Path) -> None:
    peaks = []
    for count in (40, 160):
        tracemalloc.start()
        source = ("some text " * 5000 for _ in range(count))
        path = PackedTokens.build(source, byte, tmp_path / str(count))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert path.stat().st_size > count * 100_000
    assert peaks[1] < 1.2 * peaks[0]


ENDLESS = """
    import itertools, sys
    from ember_ml.data.text import PackedTokens, Tokenizer
    byte = Tokenizer.train([], "byte")
    PackedTokens.build(itertools.repeat("text " * 1000), byte, sys.argv[1], overwrite=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and locks")
def test_a_killed_writer_leaves_the_old_file(byte: Tokenizer, tmp_path: Path) -> None:
    path = PackedTokens.build(["old text"], byte, tmp_path / "t")
    before = path.read_bytes()
    partial = tmp_path / ".t.partial"
    words = [sys.executable, "-c", textwrap.dedent(ENDLESS), str(path)]
    with subprocess.Popen(words) as writer:
        deadline = time.monotonic() + 60
        while not partial.exists() or partial.stat().st_size < 10_000:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(DataFileError, match="is being written by another process"):
            PackedTokens.build(["x"], byte, path, overwrite=True)
        writer.send_signal(signal.SIGKILL)
    assert path.read_bytes() == before
    PackedTokens.build(["new text"], byte, path, overwrite=True)
    assert byte.decode(PackedTokens(path, 8)[0][0]) == "new text"
    assert os.listdir(tmp_path) == ["t"]


def test_a_file_that_is_truncated_while_open_is_an_error(tmp_path: Path, byte: Tokenizer) -> None:
    path = PackedTokens.build(["abc" * 5000], byte, tmp_path / "corpus.tokens")
    corpus = PackedTokens(path, 8)
    os.truncate(path, 2048)
    for read in (lambda: corpus[len(corpus) - 1], lambda: corpus.batch([len(corpus) - 1])):
        with pytest.raises(DataFileError, match=r"corpus\.tokens was truncated .* 2048 bytes"):
            read()


def test_a_file_that_is_replaced_or_removed_while_open_stays_readable(
    tmp_path: Path, byte: Tokenizer
) -> None:
    path = PackedTokens.build(["abc" * 5000], byte, tmp_path / "corpus.tokens")
    corpus = PackedTokens(path, 8)
    expected = corpus[1]
    PackedTokens.build(["other text"], byte, path, overwrite=True)
    np.testing.assert_array_equal(corpus[1], expected)
    path.unlink()
    np.testing.assert_array_equal(corpus[1], expected)
