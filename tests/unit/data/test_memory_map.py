"""Datasets in files: what is read, what is written, and how little is loaded."""

from __future__ import annotations

import pickle
import resource
import sys

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import DataFileError, DataLoader, MemoryMappedDataset

from .samples import listed

X = np.arange(24, dtype=np.float32).reshape(8, 3)
Y = np.arange(8)


def test_npy_files_one_several_and_a_folder(tmp_path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    one = MemoryMappedDataset(tmp_path / "x.npy")
    pair = MemoryMappedDataset([tmp_path / "x.npy", str(tmp_path / "y.npy")])
    folder = MemoryMappedDataset(tmp_path)
    renamed = MemoryMappedDataset({"input": tmp_path / "x.npy"})
    np.testing.assert_array_equal(one.batch([5, 1]), X[[5, 1]])
    np.testing.assert_array_equal(pair.batch([5, 1])[1], Y[[5, 1]])
    np.testing.assert_array_equal(folder.batch([7])["x"], X[[7]])
    np.testing.assert_array_equal(renamed[-1]["input"], X[7])
    assert list(folder[0]) == ["x", "y"]
    assert len(folder) == 8


def test_files_in_fortran_order_and_foreign_byte_order(tmp_path, backend: str) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.save(tmp_path / "b.npy", X.astype(">f4"))
    batches = listed(DataLoader(MemoryMappedDataset(tmp_path), 3))
    for name in "fb":
        assert [row for batch in batches for row in batch[name]] == X.tolist()


def test_raw_files(tmp_path) -> None:
    X.tofile(tmp_path / "raw.bin")
    for length in (8, -1):
        dataset = MemoryMappedDataset(tmp_path / "raw.bin", dtype="float32", shape=(length, 3))
        np.testing.assert_array_equal(dataset.batch([2, 6]), X[[2, 6]])
    with pytest.raises(ArgumentError, match="96 bytes, which do not fit float32"):
        MemoryMappedDataset(tmp_path / "raw.bin", dtype="float32", shape=(7, 3))
    with pytest.raises(ArgumentError, match="dtype and shape together"):
        MemoryMappedDataset(tmp_path / "raw.bin", dtype="float32")
    with pytest.raises(ArgumentTypeError, match="one raw file"):
        MemoryMappedDataset([tmp_path / "raw.bin"], dtype="float32", shape=(8, 3))
    with pytest.raises(ArgumentError, match="shape must consist of lengths"):
        MemoryMappedDataset(tmp_path / "raw.bin", dtype="float32", shape=(8, -1))


def test_a_file_much_larger_than_what_is_touched(tmp_path) -> None:
    path, rows = tmp_path / "large.bin", 2**20
    with path.open("wb") as file:
        file.truncate(rows * 4096)  # 4 GiB of holes
        file.seek((rows - 1) * 4096)
        file.write(np.arange(1024, dtype=np.float32).tobytes())
    unit = 1 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    dataset = MemoryMappedDataset(path, dtype="float32", shape=(-1, 1024))
    assert len(dataset) == rows
    batch = dataset.batch([rows - 1, 0, rows // 2])
    np.testing.assert_array_equal(batch[0], np.arange(1024))
    assert not batch[1:].any()
    first = next(iter(DataLoader(dataset, 2, shuffle=True, backend="numpy")))
    assert first.shape == (2, 1024)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    assert after - before < 2**28  # a sixteenth of the file


def test_to_another_process_go_the_names_only(tmp_path) -> None:
    dataset = MemoryMappedDataset.create(tmp_path / "x.npy", np.zeros((5000, 100)))
    sent = pickle.dumps(dataset)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).batch([4999]), np.zeros((1, 100)))


def test_create_writes_what_numpy_reads(tmp_path) -> None:
    one = MemoryMappedDataset.create(tmp_path / "one.npy", X)
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), X)
    np.testing.assert_array_equal(one[3], X[3])
    MemoryMappedDataset.create(tmp_path / "deep" / "both", {"x": X, "y": Y.tolist()})
    np.testing.assert_array_equal(np.load(tmp_path / "deep" / "both" / "y.npy"), Y)


def test_create_of_chunks(tmp_path) -> None:
    lengths = [3] * 40 + [1]
    chunks = [np.full((length, 2), number, np.int16) for number, length in enumerate(lengths)]
    MemoryMappedDataset.create(tmp_path / "x.npy", iter(chunks))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.concatenate(chunks))
    named = MemoryMappedDataset.create(tmp_path / "d", ({"x": c, "n": c[:, 0]} for c in chunks))
    np.testing.assert_array_equal(named.batch([119, 120])["n"], [39, 40])


def test_create_leaves_nothing_where_it_fails(tmp_path) -> None:
    def broken():
        yield {"x": X}
        raise RuntimeError("the source ends")

    with pytest.raises(RuntimeError, match="the source ends"):
        MemoryMappedDataset.create(tmp_path / "d", broken())
    with pytest.raises(ShapeError, match=r"\(2,\) after float32 \(3,\)"):
        MemoryMappedDataset.create(tmp_path / "x.npy", iter([X, X[:, :2]]))
    with pytest.raises(ArgumentError, match="the same keys"):
        MemoryMappedDataset.create(tmp_path / "d", iter([{"x": X}, {"y": X}]))
    assert list(tmp_path.iterdir()) == []


def test_create_replaces_only_on_request(tmp_path) -> None:
    for name, old, new in [("x.npy", X, X[:2]), ("d", {"x": X}, {"y": Y})]:
        MemoryMappedDataset.create(tmp_path / name, old)
        with pytest.raises(DataFileError, match="overwrite=True"):
            MemoryMappedDataset.create(tmp_path / name, new)
        MemoryMappedDataset.create(tmp_path / name, new, overwrite=True)
    assert len(np.load(tmp_path / "x.npy")) == 2
    assert [file.name for file in (tmp_path / "d").iterdir()] == ["y.npy"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["d", "x.npy"]


def test_names_that_do_not_fit(tmp_path) -> None:
    with pytest.raises(ArgumentError, match=r"must end in \.npy"):
        MemoryMappedDataset.create(tmp_path / "x", X)
    with pytest.raises(ArgumentError, match="be a folder"):
        MemoryMappedDataset.create(tmp_path / "x.npy", {"x": X})
    with pytest.raises(ArgumentError, match="not a valid file name"):
        MemoryMappedDataset.create(tmp_path / "d", {"../x": X})
    with pytest.raises(DataFileError, match="there is no file or folder"):
        MemoryMappedDataset(tmp_path / "nothing.npy")
    with pytest.raises(DataFileError, match=r"contains no \.npy file"):
        MemoryMappedDataset(tmp_path)
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(ArgumentError, match=r"text\.npy cannot be mapped"):
        MemoryMappedDataset(tmp_path / "text.npy")
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ArgumentError, match=r"object\.npy"):
        MemoryMappedDataset(tmp_path / "object.npy")


def test_files_without_examples(tmp_path) -> None:
    empty = MemoryMappedDataset.create(tmp_path / "x.npy", X[:0])
    assert len(empty) == 0
    (tmp_path / "raw.bin").touch()
    raw = MemoryMappedDataset(tmp_path / "raw.bin", dtype="int8", shape=(-1, 3))
    assert (len(raw), raw.batch([]).shape) == (0, (0, 3))


def test_overwriting_keeps_files_of_others(tmp_path) -> None:
    MemoryMappedDataset.create(tmp_path / "data", {"x": np.zeros(3)})
    (tmp_path / "data" / "notes.txt").write_text("mine")
    with pytest.raises(DataFileError, match=r"also contains notes.txt"):
        MemoryMappedDataset.create(tmp_path / "data", {"x": np.ones(3)}, overwrite=True)
    assert (tmp_path / "data" / "notes.txt").read_text() == "mine"
    assert len(MemoryMappedDataset(tmp_path / "data")) == 3
