"""Streams of lines and JSON objects."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data import DataFileError, DataLoader
from ember_ml.data.text import JSONLDataset, LineDataset
from ember_ml.data.text.lines import read_text

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


one_line = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"))


@given(st.lists(one_line, min_size=1))
def test_lines_are_those_that_were_written(lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.txt")
        path.write_bytes(content)
        stream = LineDataset(path)
        expected = [lines[0].removeprefix("\ufeff"), *lines[1:]]
        assert list(stream) == expected
        for start in (0, 1, len(lines) - 1, len(lines), len(lines) + 1):
            assert list(stream.iterate_from(start)) == expected[start:]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.txt{suffix}").write_bytes(COMPRESS[suffix](b"one\r\n\n two \nthree"))
    (tmp_path / f"b.txt{suffix}").write_bytes(COMPRESS[suffix]("\ufeffvier\n".encode()))
    paths = [tmp_path / f"a.txt{suffix}", str(tmp_path / f"b.txt{suffix}")]
    assert list(LineDataset(paths)) == ["one", "", " two ", "three", "vier"]
    assert list(LineDataset(paths, skip_empty=True).iterate_from(1)) == [" two ", "three", "vier"]
    kept = LineDataset(paths, keep_newline=True)
    assert list(kept) == ["one\r\n", "\n", " two \n", "three", "vier\n"]
    assert list(pickle.loads(pickle.dumps(kept))) == list(kept)
    assert read_text(paths[0]) == "one\n\n two \nthree"


def test_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("é\nü\n".encode("latin-1"))
    assert list(LineDataset(tmp_path / "a.txt", encoding="latin-1")) == ["é", "ü"]
    for encoding in ("utf-16", "no-such", "rot13"):
        with pytest.raises(ArgumentError, match="encoding must be an extension of ASCII"):
            LineDataset(tmp_path / "a.txt", encoding=encoding)


def test_invalid_text_names_file_line_and_byte(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\n\xc3\xa9 also\nx\xff\xfe\nmore\n")
    stream = iter(LineDataset(tmp_path / "bad.txt"))
    assert [next(stream), next(stream)] == ["good", "é also"]
    with pytest.raises(DataFileError, match=r"bad.txt, line 3: not valid utf-8.*byte 14.*\(0xff\)"):
        next(stream)
    assert list(LineDataset(tmp_path / "bad.txt").iterate_from(3)) == ["more"]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_truncated_file_names_itself(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.txt{suffix}"
    content = COMPRESS[suffix](os.urandom(3000).hex().encode() + b"\n" + b"x\n" * 5000)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFileError, match=rf"a.txt{suffix}, after line \d+: cannot be read"):
        list(LineDataset(path))
    path.write_bytes(b"this is plain text\n")
    with pytest.raises(DataFileError, match=rf"a.txt{suffix}, after line 0: cannot be read"):
        list(LineDataset(path))


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert list(LineDataset(tmp_path / "empty.txt")) == []
    with pytest.raises(DataFileError, match=r"gone.txt is missing"):
        LineDataset([tmp_path / "empty.txt", tmp_path / "gone.txt"])
    with pytest.raises(DataFileError, match="is a folder, not a file"):
        JSONLDataset(tmp_path)
    with pytest.raises(ArgumentError, match="at least one file"):
        LineDataset([])
    with pytest.raises(ArgumentTypeError, match="5 is not the path of a file"):
        LineDataset([5])


@pytest.mark.usefixtures("on_numpy")
@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_resumes_exactly(workers: int, tmp_path: Path) -> None:
    rows = [{"text": f"line {n}", "n": n} for n in range(23)]
    for at, part in enumerate((rows[:9], rows[9:])):
        text = "\n\n".join(json.dumps(row) for row in part)
        (tmp_path / f"{at}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    files = [tmp_path / "0.jsonl.gz", tmp_path / "1.jsonl.gz"]

    def loader() -> DataLoader:
        return DataLoader(JSONLDataset(files), batch_size=4, num_workers=workers)

    whole = [batch["text"] for batch in loader()]
    assert [text for texts in whole for text in texts] == [row["text"] for row in rows]
    first = loader()
    iterator = iter(first)
    parts = [next(iterator)["text"] for _ in range(3)]
    second = loader()
    second.load_state_dict(first.state_dict())
    iterator.close()
    assert [*parts, *(batch["text"] for batch in second)] == whole


def test_objects_and_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": [1, {"c": "ü"}]}\n\n  \n{"a": 2}')
    assert list(JSONLDataset(tmp_path / "a.jsonl")) == [{"a": 1, "b": [1, {"c": "ü"}]}, {"a": 2}]
    assert list(JSONLDataset(tmp_path / "a.jsonl", "a").iterate_from(1)) == [2]
    with pytest.raises(DataFileError, match=r"a.jsonl, line 4: there is no field 'b'.*are 'a'"):
        list(JSONLDataset(tmp_path / "a.jsonl", "b"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": ', "not valid JSON"),
        ('{"a": 1} {"a": 2}', "not valid JSON: Extra data"),
        ("[1, 2]", r"expected a JSON object, not \[1, 2\]"),
        ("null", "expected a JSON object, not None"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
    ],
)
def test_an_odd_line_names_itself(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"a": 0}}\n{line}\n{{"a": 2}}\n')
    with pytest.raises(DataFileError, match=rf"a.jsonl, line 2: {message}"):
        list(JSONLDataset(tmp_path / "a.jsonl"))


def test_invalid_text_in_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(DataFileError, match=r"a.jsonl, line 1: not valid utf-8.*byte 7"):
        list(JSONLDataset(tmp_path / "a.jsonl"))
