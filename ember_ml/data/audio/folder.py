"""Datasets of audio files in folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.data.audio.files import Audio, info, read
from ember_ml.data.audio.length import Position, check_position, fit_length
from ember_ml.data.audio.samples import check_range, check_rate
from ember_ml.data.class_folders import class_labels
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import DataFileError, check_index
from ember_ml.data.files import PathLike
from ember_ml.data.manifest import labeled_files

SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".au")


class AudioFolder(Dataset):
    """Dataset of audio files: the samples and the class of each.

    An example is `(samples, label)`: float32, and the index of its class in `classes`. Without
    labels in a manifest it is the samples alone. Without `duration`, lengths differ: batch them
    with `pad_collate`.

    Args:
        root: Folder with one folder of audio files for each class. Files may be nested deeper.
            With a manifest, the folder that all its files are in.
        manifest: CSV file with a header, or JSON lines, with the columns "path", relative to
            `root`, and optionally "label". Default: the folders are the classes.
        sample_rate: Sample rate in Hz; files of other rates are resampled. Default: that of the
            first file, and files of other rates are errors.
        mono: Whether to average the channels. Default: True.
        duration: Length in seconds to crop, or pad with zeros, all examples to. Default: the length
            of each file.
        position: Part of a longer file that is used, and place of a shorter one: "start", "center"
            or "end". Default: "start".

    Raises:
        DataFileError: If there are no files, or a manifest is invalid or names a file outside
            the root.

    Example:
        >>> import tempfile
        >>> from ember_ml.data import audio
        >>> folder = tempfile.TemporaryDirectory()
        >>> for name in ("high", "low"):
        ...     audio.write(f"{folder.name}/{name}/0.wav", [0.5] * 800, 8000)
        >>> dataset = audio.AudioFolder(folder.name, duration=0.2)
        >>> dataset.classes, len(dataset)
        (('high', 'low'), 2)
        >>> samples, label = dataset[1]
        >>> samples.shape, label
        ((1600,), 1)
        >>> folder.cleanup()
    """

    def __init__(
        self,
        root: PathLike,
        manifest: PathLike | None = None,
        *,
        sample_rate: int | None = None,
        mono: bool = True,
        duration: float | None = None,
        position: Position = "start",
    ) -> None:
        self.root = Path(root).absolute()
        files = labeled_files("AudioFolder", self.root, manifest, SUFFIXES, "audio")
        self.paths = tuple(file.path for file in files)
        self.classes, self.labels = class_labels(files)
        self._resample = sample_rate is not None
        self.sample_rate = (
            info(self.paths[0]).sample_rate
            if sample_rate is None
            else check_rate("AudioFolder", "sample_rate", sample_rate)
        )
        self.mono = mono
        self.length = None if duration is None else self._length(duration)
        self.position = check_position("AudioFolder", position)

    def _length(self, duration: float) -> int:
        seconds, _ = check_range("AudioFolder", "duration", duration, 0.0)
        length = round(seconds * self.sample_rate)
        if not length:
            raise ArgumentError(
                f"AudioFolder: duration={duration!r} s is less than a sample at "
                f"{self.sample_rate} Hz"
            )
        return length

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> np.ndarray | tuple[np.ndarray, int]:
        index = check_index("AudioFolder", index, len(self))
        samples = self._read(self.paths[index]).samples
        if self.length is not None:
            samples = fit_length(samples, self.length, self.position)
        return samples if self.labels is None else (samples, int(self.labels[index]))

    def _read(self, path: Path) -> Audio:
        audio = read(path, self.sample_rate if self._resample else None, mono=self.mono)
        if audio.sample_rate != self.sample_rate:
            raise DataFileError(
                f"{path}: the sample rate is {audio.sample_rate} Hz, but the first file of the "
                f"dataset has {self.sample_rate} Hz; pass sample_rate= to resample all files"
            )
        return audio

    def __repr__(self) -> str:
        return (
            f"AudioFolder({str(self.root)!r}: {len(self)} files, {len(self.classes)} classes, "
            f"{self.sample_rate} Hz)"
        )
