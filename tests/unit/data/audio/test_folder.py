"""Folders of audio files: classes, manifests, lengths, sample rates, worker processes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from ember_ml._core.errors import ArgumentError
from ember_ml.data import DataFileError, DataLoader, audio, pad_collate

from .signals import noise, tone

RATE = 8000
PITCHES = {"b": 300.0, "a": 600.0, "c": 900.0}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two files of each of three classes, one of them nested, and files to ignore."""
    folder = tmp_path / "data"
    for name, pitch in PITCHES.items():
        audio.write(folder / name / "0.wav", tone(pitch, 800, RATE), RATE)
        audio.write(folder / name / "more" / "1.flac", tone(pitch, 1200, RATE), RATE)
    (folder / "a" / "notes.txt").write_text("not audio")
    (folder / "a" / ".hidden.wav").write_text("not audio")
    (folder / ".cache").mkdir()
    return folder


def test_folders_are_classes(root: Path) -> None:
    dataset = audio.AudioFolder(root)
    assert dataset.classes == ("a", "b", "c")
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert [path.name for path in dataset.paths] == ["0.wav", "1.flac"] * 3
    assert dataset.sample_rate == RATE
    for index, (samples, label) in enumerate(dataset):
        expected = tone(PITCHES[dataset.classes[label]], 800 + 400 * (index % 2), RATE)
        np.testing.assert_allclose(samples, expected, atol=2**-14)
        assert samples.dtype == np.float32
    assert dataset[-1][1] == 2


@pytest.mark.parametrize("position", ["start", "center", "end"])
def test_a_fixed_length(root: Path, position: str) -> None:
    dataset = audio.AudioFolder(root, duration=0.125, position=position)
    batch, _ = dataset.batch([0, 1])
    assert batch.shape == (2, 1000)
    pad = {"start": 0, "center": 100, "end": 200}[position]
    short, long = tone(600.0, 800, RATE), tone(600.0, 1200, RATE)
    np.testing.assert_allclose(batch[0], np.pad(short, (pad, 200 - pad)), atol=2**-14)
    np.testing.assert_allclose(batch[1], long[pad : pad + 1000], atol=2**-14)


def test_unequal_lengths_are_padded_by_the_loader(root: Path, backend: str) -> None:
    loader = DataLoader(audio.AudioFolder(root), 2, collate=pad_collate())
    (samples, labels), (lengths, _) = next(iter(loader))
    assert samples.shape == (2, 1200)
    assert lengths.tolist() == [800, 1200]
    assert labels.tolist() == [0, 0]


def test_files_of_another_sample_rate(root: Path) -> None:
    audio.write(root / "c" / "fast.wav", tone(900.0, 4800, 48000), 48000)
    with pytest.raises(DataFileError, match=r"fast\.wav: the sample rate is 48000 Hz.*8000 Hz"):
        list(audio.AudioFolder(root))
    dataset = audio.AudioFolder(root, sample_rate=16000)
    assert [len(samples) for samples, _ in dataset] == [1600, 2400] * 2 + [1600, 1600, 2400]


def rows(root: Path, labels: bool = True) -> list[dict[str, str]]:
    files = [f"{name}/0.wav" for name in PITCHES]
    return [{"path": file, **({"label": file[0] * 2} if labels else {})} for file in files]


def write_manifest(root: Path, kind: str, entries: list[dict]) -> Path:
    path = root.parent / f"list.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    else:
        names = list(entries[0])
        lines = [",".join(names), *(",".join(str(e[n]) for n in names) for e in entries)]
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("labels", [True, False])
def test_manifests(root: Path, kind: str, labels: bool) -> None:
    dataset = audio.AudioFolder(root, write_manifest(root, kind, rows(root, labels)))
    assert [path.parent.name for path in dataset.paths] == list(PITCHES)
    if labels:
        assert dataset.classes == ("aa", "bb", "cc")
        assert [label for _, label in dataset] == [1, 0, 2]
    else:
        assert dataset.classes == ()
        assert dataset[0].shape == (800,)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_paths_outside_of_the_root_are_refused(root: Path, kind: str) -> None:
    outside = root.parent / "outside.wav"
    audio.write(outside, tone(), RATE)
    (root / "link.wav").symlink_to(outside)
    for name in ("../outside.wav", str(outside), "link.wav", "a/../../outside.wav"):
        manifest = write_manifest(root, kind, [*rows(root), {"path": name, "label": "x"}])
        with pytest.raises(DataFileError, match=r"list\.\w+:\d: .*is outside the folder") as got:
            audio.AudioFolder(root, manifest)
        assert name in str(got.value)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("x.csv", "file,label\na,b\n", "with 'path' among them; it names file, label"),
        ("x.csv", "", "with 'path' among them; it names none"),
        ("x.csv", "path,label\n", "has no rows"),
        ("x.csv", "path,label\nmissing.wav,a\n", r"x\.csv:2: there is no file"),
        ("x.csv", "path,label\n,a\n", r"x\.csv:2: 'path' must name the audio file"),
        ("x.csv", "path,label\na/0.wav,a\nb/0.wav,\n", "all rows or none must have a label"),
        ("x.csv", 'path,label\n"a/0.wav,a\n', "not valid CSV"),
        ("x.csv", b"path\n\xff\xfe\n", "not UTF-8 at byte 5"),
        ("x.jsonl", '{"path": "a/0.wav"}\n{"path": \n', r"x\.jsonl:2: not valid JSON"),
        ("x.jsonl", "[1, 2]\n", "expected an object"),
        ("x.jsonl", '{"path": 3}\n', "'path' must name the audio file, not 3"),
        ("x.jsonl", '{"path": "a/0.wav", "label": [1]}\n', "'label' must be a string"),
        ("x.jsonl", "[" * 100_000, "not valid JSON"),
        ("x.txt", "a", "must end in"),
    ],
)
def test_bad_manifests(root: Path, name: str, text: str | bytes, reason: str) -> None:
    path = root / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataFileError, match=reason) as caught:
        audio.AudioFolder(root, path)
    assert name in str(caught.value)


def test_bad_folders(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"there is no folder .*nowhere"):
        audio.AudioFolder(tmp_path / "nowhere")
    (root / "d").mkdir()
    with pytest.raises(DataFileError, match=r"class folder .*d contains no audio file \(\.wav"):
        audio.AudioFolder(root)
    with pytest.raises(DataFileError, match="has no class folders"):
        audio.AudioFolder(root / "a" / "more")
    with pytest.raises(DataFileError, match=r"nowhere\.csv: No such file"):
        audio.AudioFolder(root, root / "nowhere.csv")
    with pytest.raises(ArgumentError, match="less than a sample"):
        audio.AudioFolder(root / "..", duration=1e-9)
    with pytest.raises(ArgumentError, match="sample_rate must be at least 1"):
        audio.AudioFolder(root / "..", sample_rate=0)


def test_a_damaged_file_is_named_with_its_index(root: Path) -> None:
    (root / "b" / "0.wav").write_bytes((root / "b" / "0.wav").read_bytes()[:600])
    with pytest.raises(DataFileError, match=r"b/0\.wav: truncated") as caught:
        audio.AudioFolder(root).batch(range(6))
    assert caught.value.__notes__ == ["in example 2 of AudioFolder"]


def test_worker_processes_read_the_same(root: Path) -> None:
    dataset = audio.AudioFolder(root, sample_rate=16000, duration=0.1)
    mapped = dataset.map(audio.Compose([audio.Gain(), audio.AddNoise()]), seed=5)
    assert pickle.loads(pickle.dumps(mapped)).dataset.paths == dataset.paths
    batches = []
    for options in ({}, {"num_workers": 1, "worker_type": "process"}):
        loader = DataLoader(mapped, 3, shuffle=True, backend="numpy", **options)
        batches.append([(x.numpy(), y.numpy()) for x, y in loader])
    for (x, y), (other_x, other_y) in zip(*batches, strict=True):
        np.testing.assert_array_equal(x, other_x)
        np.testing.assert_array_equal(y, other_y)


def test_stereo_files(tmp_path: Path) -> None:
    audio.write(tmp_path / "x" / "0.wav", noise(500, channels=2), RATE)
    assert audio.AudioFolder(tmp_path, mono=False)[0][0].shape == (2, 500)
    assert audio.AudioFolder(tmp_path, mono=False, duration=0.1)[0][0].shape == (2, 800)
    assert audio.AudioFolder(tmp_path)[0][0].shape == (500,)
