"""Tokenizers against the packages tokenizers and tiktoken."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tiktoken
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import DataFileError, DataLoader
from ember_ml.data.text import LineDataset, Tokenizer, TokenizerError, Vocabulary
from ember_ml.data.text.kinds import KINDS, byte_characters
from tests.unit.data.text.corpus import documents

SIZES = {"bpe": 600, "byte_bpe": 600, "char_bpe": 400, "wordpiece": 400, "byte": None, "char": None}
GPT2_WORDS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(scope="module", params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.train(documents(), kind, SIZES[kind])


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.train(documents(), "bpe", 600)


def bare(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(tokenizer.to_json())


def test_every_kind_has_a_size() -> None:
    assert set(SIZES) == set(KINDS)


def test_ids_and_offsets_of_the_package(tokenizer: Tokenizer) -> None:
    expected = bare(tokenizer).encode_batch(list(documents()))
    assert tokenizer.encode_batch(documents()) == [each.ids for each in expected]
    with_offsets = tokenizer.encode_batch(documents(), offsets=True)
    assert [each.offsets for each in with_offsets] == [each.offsets for each in expected]
    assert tokenizer.encode(documents()[3]) == expected[3].ids
    assert tokenizer.encode(documents()[3], offsets=True) == with_offsets[3]
    assert tokenizer.decode(expected[3].ids) == bare(tokenizer).decode(expected[3].ids)
    assert tokenizer.vocab_size == bare(tokenizer).get_vocab_size() == len(tokenizer)


def test_training_is_that_of_the_package(bpe: Tokenizer) -> None:
    other = tokenizers.Tokenizer(models.BPE())
    other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    other.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<pad>", "<bos>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    other.train_from_iterator(documents(), trainer)
    assert json.loads(bpe.to_json()) == json.loads(other.to_str())
    assert bpe.vocab_size == 600


def test_bpe_has_the_ids_of_tiktoken(bpe: Tokenizer) -> None:
    of_character = {character: byte for byte, character in enumerate(byte_characters())}
    special = set(bpe.special_tokens.values())
    vocabulary = json.loads(bpe.to_json())["model"]["vocab"]
    ranks = {
        bytes(of_character[character] for character in token): number
        for token, number in vocabulary.items()
        if token not in special
    }
    other = tiktoken.Encoding(
        "own", pat_str=GPT2_WORDS, mergeable_ranks=ranks, special_tokens={"<eos>": bpe.eos_id}
    )
    for text in documents():
        assert bpe.encode(text) == other.encode(text)
    assert bpe.encode("a<eos>b") == other.encode("a<eos>b", allowed_special="all")


@given(texts)
@settings(max_examples=150, deadline=None)
def test_byte_level_tokenizers_are_lossless(text: str) -> None:
    for name in ("bpe", "byte"):
        tokenizer = _TRAINED[name]
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
        assert "".join(tokenizer.decode_stream(ids, skip_special_tokens=False)) == text
    assert _TRAINED["byte"].encode(text) == list(text.encode())


_TRAINED = {
    "bpe": Tokenizer.train(documents()[:3], "bpe", 400, special_tokens={}),
    "byte": Tokenizer.train([], "byte"),
}


def test_characters_have_the_ids_of_the_vocabulary(tmp_path: Path) -> None:
    text = "".join(documents())
    vocabulary = Vocabulary.of(text)
    (tmp_path / "vocab.json").write_text(vocabulary.to_json(), "utf-8")
    tokenizer = Tokenizer.load(tmp_path / "vocab.json")
    assert tokenizer.encode(text) == vocabulary.encode(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    with pytest.raises(TokenizerError, match=r"cannot be encoded: .*UNK"):
        tokenizer.encode("\u1234")


def test_a_stream_is_the_whole_text(tokenizer: Tokenizer) -> None:
    for text in documents()[-5:]:
        ids = tokenizer.encode(text)
        assert "".join(tokenizer.decode_stream(ids)) == tokenizer.decode(ids)
        cut = len(ids) // 2
        rest = "".join(tokenizer.decode_stream(iter(ids[cut:]), after=ids[:cut]))
        if not tokenizer.decode(ids[:cut]).endswith("\ufffd"):  # no character is cut
            assert tokenizer.decode(ids[:cut]) + rest == tokenizer.decode(ids)


def test_an_incomplete_character_ends_a_stream() -> None:
    byte = _TRAINED["byte"]
    assert list(byte.decode_stream([0x61, 0xC3, 0xA9, 0xF0, 0x9F])) == ["a", "é", "\ufffd"]


def test_ids_may_be_arrays_tensors_or_unknown(bpe: Tokenizer, backend: str) -> None:
    ids = bpe.encode("some text")
    for form in (tuple(ids), iter(ids), np.array(ids), ops.array(ids)):
        assert bpe.decode(form) == "some text"
    assert bpe.decode_batch(ops.array([ids, ids])) == ["some text", "some text"]
    assert bpe.decode([*ids, 600, -1, *ids]) == "some text\ufffd\ufffdsome text"
    assert bpe.decode([]) == bpe.decode(np.array([], np.int64)) == ""
    for bad in ([1.5], ["a"], [[1]], np.array([0.5])):
        with pytest.raises(ArgumentTypeError, match="ids must be integers"):
            bpe.decode(bad)


def test_special_tokens(bpe: Tokenizer) -> None:
    assert (bpe.pad_id, bpe.bos_id, bpe.eos_id, bpe.unk_id) == (0, 1, 2, None)
    assert bpe.decode([*bpe.encode("a"), bpe.eos_id]) == "a"
    assert bpe.decode([*bpe.encode("a"), bpe.eos_id], skip_special_tokens=False) == "a<eos>"
    own = Tokenizer.train(
        documents(), "wordpiece", 300, special_tokens={"unk": "??"}, extra_tokens=["[MASK]"]
    )
    assert own.special_tokens == {"unk": "??"}
    assert (own.pad_id, own.unk_id, own.token_to_id("[MASK]")) == (None, 0, 1)
    assert own.encode("\u1234") == [0]
    assert own.id_to_token(1) == "[MASK]"
    assert own.id_to_token(10**9) is None


def test_it_is_the_same_after_save_and_load(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "one.json")
    tokenizer.save(tmp_path / "folder")
    forms = [
        Tokenizer.load(tmp_path / "one.json"),
        Tokenizer.load(tmp_path / "folder"),
        Tokenizer.load(str(tmp_path / "folder" / "tokenizer.json")),
        Tokenizer.from_files(tokenizer.to_files()),
        pickle.loads(pickle.dumps(tokenizer)),
        Tokenizer(bare(tokenizer)),
    ]
    for other in forms:
        assert other == tokenizer
        assert other.checksum == tokenizer.checksum
        assert other.special_tokens == tokenizer.special_tokens
        assert other.encode_batch(documents()[-4:]) == tokenizer.encode_batch(documents()[-4:])


def test_unusual_special_tokens_need_a_folder(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["ab"], "byte", special_tokens={"eos": "THE END"})
    with pytest.raises(ArgumentError, match="save to a folder"):
        tokenizer.save(tmp_path / "one.json")
    tokenizer.save(tmp_path)
    assert Tokenizer.load(tmp_path).eos_id == tokenizer.eos_id == 256
    given = Tokenizer.load(tmp_path / "tokenizer.json", {"pad": "THE END"})
    assert (given.pad_id, given.eos_id) == (256, None)


def test_settings_of_other_programs_are_read(tmp_path: Path, bpe: Tokenizer) -> None:
    other = bare(bpe)
    other.enable_truncation(3)
    other.enable_padding(length=100)
    other.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": {"content": "<bos>"}, "pad_token": None, "model_max_length": 9})
    )
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.special_tokens == {"eos": "<bos>"}
    assert tokenizer.encode(documents()[0]) == bpe.encode(documents()[0])
    other.no_truncation()
    other.no_padding()
    other.post_processor = tokenizers.processors.TemplateProcessing(
        "<bos> $A", None, [("<bos>", 1)]
    )
    template = Tokenizer(other)
    assert template.encode("hi") == [1, *bpe.encode("hi")]
    assert template.encode("hi", add_special_tokens=False) == bpe.encode("hi")


def test_files_and_lines_are_sources(tmp_path: Path) -> None:
    lines = [line for text in documents() for line in text.splitlines(keepends=True)]
    (tmp_path / "a.txt").write_text("".join(lines[:500]), "utf-8", newline="")
    (tmp_path / "b.txt").write_text("".join(lines[500:]), "utf-8", newline="")
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    expected = Tokenizer.train(lines, "bpe", 400)
    for source in (paths, LineDataset(paths, keep_newline=True), iter(lines)):
        assert Tokenizer.train(source, "bpe", 400) == expected
    assert Tokenizer.train(str(paths[0]), "char") == Tokenizer.train(lines[:500], "char")


def test_lower_case() -> None:
    for name, size in SIZES.items():
        lower = Tokenizer.train(["Some TEXT some text"], name, size, lowercase=True)
        assert lower.encode("SOME text") == lower.encode("some text")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], "bbpe", 300), "kind must be one of bpe.*did you mean"),
        ((["a"], "bpe"), "'bpe' needs a vocab_size"),
        ((["a"], "bpe", 258), "vocab_size must be at least 259"),
        (([], "bpe", 300), "has no text"),
        (([], "char"), "has no text"),
        ((["a", 5], "bpe", 300), "text 1 must be a str, not 5"),
        ((["a", "\ud800"], "char"), "text 1 has half of a surrogate pair at 0"),
        ((5, "bpe", 300), "must be texts, or a file, not int"),
        (("no/such/file", "bpe", 300), "no/such/file is missing"),
    ],
)
def test_wrong_arguments_of_training(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError, DataFileError), match=message):
        Tokenizer.train(*arguments)


def test_wrong_special_tokens() -> None:
    with pytest.raises(ArgumentError, match="the roles are pad, bos, eos, unk"):
        Tokenizer.train(["a"], "byte", special_tokens={"end": "x"})
    with pytest.raises(ArgumentError, match="'wordpiece' needs a special token for unknown"):
        Tokenizer.train(["a"], "wordpiece", 30, special_tokens={"pad": "x"})
    with pytest.raises(ArgumentError, match="room for 2; pass an unk token"):
        Tokenizer.train(["abc"], "char", 2, special_tokens={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["a", 5], "text 1 must be a str, not 5"),
        (["a", "x\ud800"], "text 1 has half of a surrogate pair at 1"),
        ("ab", "expected texts, not one text"),
    ],
)
def test_wrong_texts(bpe: Tokenizer, text: object, message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        bpe.encode_batch(text)
    with pytest.raises(ArgumentTypeError, match="expected a text"):
        bpe.encode(["a"])


DAMAGE = {
    "empty": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
    "list": lambda text: "[]",
    "no model": lambda text: json.dumps({"version": "1.0"}),
    "model of no kind": lambda text: json.dumps({**json.loads(text), "model": {"type": "X"}}),
    "merges": lambda text: text.replace('"merges": [', '"merges": [["no", "such"],'),
    "ids": lambda text: text.replace('"<pad>": 0', '"<pad>": -1'),
    "version": lambda text: text.replace('"version": "1.0"', '"version": "9.0"'),
    "nested": lambda text: "[" * 100_000,
    "regex": lambda text: text.replace('"ByteLevel"', '"Split", "pattern": {"Regex": "("}', 1),
    "invalid": lambda text: b"\xff\xfe" + text.encode(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named(damage: str, bpe: Tokenizer, tmp_path: Path) -> None:
    content = DAMAGE[damage](bpe.to_json())
    assert content != bpe.to_json()
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataFileError, match=r"tokenizer.json is not a tokenizer: "):
        Tokenizer.load(tmp_path)
    with pytest.raises(TokenizerError):
        Tokenizer.from_files({"tokenizer.json": path.read_bytes()})


def test_files_that_are_missing_or_do_not_fit(bpe: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"there is no file .*tokenizer.json"):
        Tokenizer.load(tmp_path)
    with pytest.raises(TokenizerError, match=r"there is no tokenizer.json"):
        Tokenizer.from_files({})
    bpe.save(tmp_path)
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": "<gone>"}')
    with pytest.raises(DataFileError, match="the eos token '<gone>' is not in the vocabulary"):
        Tokenizer.load(tmp_path)
    (tmp_path / "special_tokens_map.json").write_text("[")
    with pytest.raises(DataFileError, match=r"special_tokens_map.json is damaged"):
        Tokenizer.load(tmp_path)


SAME = """
    import hashlib, sys
    from ember_ml.data.text import Tokenizer
    from tests.unit.data.text.corpus import documents
    for kind in ("bpe", "char_bpe", "wordpiece", "char"):
        tokenizer = Tokenizer.train(documents(), kind, None if kind == "char" else 500)
        print(kind, hashlib.sha256(tokenizer.to_json().encode()).hexdigest())
"""


def test_training_is_deterministic_across_processes() -> None:
    words = [sys.executable, "-c", textwrap.dedent(SAME)]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = [run.communicate()[0] for run in runs]
    assert first == second
    assert first.count("\n") == 4


FORK = """
    import os
    from ember_ml.data.text import Tokenizer
    tokenizer = Tokenizer.train(["some text to merge"] * 50, "bpe", 300)
    texts = ["some text"] * 100
    expected = tokenizer.encode_batch(texts)  # in threads
    child = os.fork()
    if not child:
        os._exit(0 if tokenizer.encode_batch(texts) == expected else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "TOKENIZERS_PARALLELISM" not in os.environ
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_fork_works_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORK)], capture_output=True, text=True, timeout=60
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.usefixtures("on_numpy")
def test_worker_processes_encode(bpe: Tokenizer, tmp_path: Path) -> None:
    lines = [line for text in documents()[:2] for line in text.splitlines()][:40]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", "utf-8")
    stream = LineDataset(tmp_path / "lines.txt").map(bpe.encode).map(np.array)
    options = {"batch_size": 1, "num_workers": 1}
    found = [batch[0].tolist() for batch in DataLoader(stream, worker_type="process", **options)]
    assert found == bpe.encode_batch(lines)


def test_it_is_a_file_of_a_module(bpe: Tokenizer, tmp_path: Path) -> None:
    import ember_ml
    from ember_ml import nn

    class Reader(nn.Module):
        def __init__(self, tokenizer: Tokenizer | None = None) -> None:
            self.tokenizer = tokenizer

        def extra_files(self):
            return {} if self.tokenizer is None else self.tokenizer.to_files()

        def load_extra_files(self, files):
            self.tokenizer = Tokenizer.from_files(files) if files else None

    ember_ml.save(Reader(bpe), tmp_path)
    assert ember_ml.load(tmp_path, into=Reader()).tokenizer == bpe
    assert Tokenizer.load(tmp_path) == bpe


def test_wordpiece_does_not_exceed_the_vocabulary_size() -> None:
    with pytest.raises(ArgumentError, match=r"need 9 tokens, more than vocab_size=8"):
        Tokenizer.train(["ab ba c"], "wordpiece", 8)
    assert Tokenizer.train(["ab ba c"], "wordpiece", 9).vocab_size == 9
