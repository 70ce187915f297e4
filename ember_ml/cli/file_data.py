"""Datasets of audio folders, image folders, tables and time series."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any

from ember_ml._core import array_files
from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.data_sources import AudioFields, ImageFields, TableFields
from ember_ml.configs.train_run import AudioData, ImageData, SeriesData, TableData
from ember_ml.data import ArrayDataset, Dataset, random_split
from ember_ml.data.series import SeriesWindows
from ember_ml.registry.base import close_matches

FILES = (AudioData, ImageData, SeriesData, TableData)


def find(key: str, path: str, config_folder: Path) -> Path:
    """Return a file or folder, which may be relative to the folder of the YAML file.

    Args:
        key: Key of the config, for the error message.
        path: The path.
        config_folder: Folder of the YAML file.
    """
    for place in (Path(path).expanduser(), config_folder / path):
        if place.exists():
            return place
    raise ArgumentError(
        f"{key}: there is no file or folder {path}, neither here nor in {config_folder}"
    )


class FileData(abc.ABC):
    """Data in files: the whole dataset, a split of it, and other files with the same classes.

    Args:
        path: File or folder.
        features: Config of the features; None for the data itself.
    """

    labels: tuple[str, ...] | None = None

    def __init__(self, path: Path, features: Any) -> None:
        self.path = path
        self.features = features

    @abc.abstractmethod
    def read(self, path: Path) -> Dataset:
        """Return the dataset of a file or folder, and check its classes."""

    def dataset(self) -> Dataset:
        """Return the whole dataset."""
        return self._with_features(self.read(self.path))

    def other(self, path: str, config_folder: Path) -> Dataset:
        """Return the dataset of another file or folder.

        Args:
            path: The path.
            config_folder: Folder of the YAML file.
        """
        return self._with_features(self.read(find("validation", path, config_folder)))

    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset | None]:
        """Return the dataset in two parts; the second one is None if the fraction is 0.

        Args:
            fraction: Size of the second part.
            seed: Seed of the random split.
        """
        dataset = self.dataset()
        count = round(len(dataset) * fraction)
        if not count:
            return dataset, None
        first, second = random_split(dataset, [len(dataset) - count, count], seed=seed)
        return first, second

    def check_labels(self, path: Path, labels: tuple[str, ...] | None) -> None:
        """Set the labels, or raise an error if those of another file differ.

        Args:
            path: File or folder.
            labels: Its labels.
        """
        if path == self.path:
            self.labels = labels
        elif labels != self.labels:
            raise ArgumentError(
                f"validation: {path} has the classes {labels}, but {self.path} has {self.labels}"
            )

    def _with_features(self, dataset: Dataset) -> Dataset:
        if self.features is None:
            return dataset
        from ember_ml.training.pipelines.preparation import Prepare

        extractor = self.features.create()
        if extractor.needs_fit:
            raise ArgumentError(
                f"features: {type(extractor).__name__} is fitted to data; use `ember pipeline run` "
                "with a preprocessing, which fits it to the training data"
            )
        return dataset.map(Prepare(extractor, None), batched=True)


class AudioFiles(FileData):
    """Audio files of classes.

    Args:
        fields: Config of the data.
        config_folder: Folder of the YAML file.
    """

    def __init__(self, fields: AudioFields, config_folder: Path) -> None:
        super().__init__(find("data.audio.path", fields.path, config_folder), fields.features)
        self.fields = fields
        self.config_folder = config_folder

    def read(self, path: Path) -> Dataset:
        """Return the dataset of a folder."""
        from ember_ml.data.audio import AudioFolder

        fields, own = self.fields, path == self.path
        manifest = None
        if fields.manifest is not None and own:
            manifest = find("data.audio.manifest", fields.manifest, self.config_folder)
        dataset = AudioFolder(
            path, manifest, sample_rate=fields.sample_rate, duration=fields.duration
        )
        self.check_labels(path, tuple(dataset.classes) or None)
        return dataset


class ImageFiles(FileData):
    """Image files of classes.

    Args:
        fields: Config of the data.
        config_folder: Folder of the YAML file.
    """

    def __init__(self, fields: ImageFields, config_folder: Path) -> None:
        super().__init__(find("data.images.path", fields.path, config_folder), fields.features)
        self.fields = fields
        self.config_folder = config_folder

    def read(self, path: Path) -> Dataset:
        """Return the dataset of a folder, with pixels between 0 and 1."""
        from ember_ml.data.vision import ImageFolder, Resize, ToFloat

        fields, own = self.fields, path == self.path
        manifest = None
        if fields.manifest is not None and own:
            manifest = find("data.images.manifest", fields.manifest, self.config_folder)
        folder = ImageFolder(path, manifest, mode=fields.mode)
        self.check_labels(path, tuple(folder.classes) or None)
        dataset: Dataset = folder
        if fields.size is not None:
            size = (fields.size, fields.size) if isinstance(fields.size, int) else fields.size
            dataset = dataset.map(Resize(size))
        return dataset.map(ToFloat())


class TableRows(FileData):
    """Rows of a table, or windows of a time series.

    Args:
        key: Key of the config, for error messages.
        fields: Config of the data.
        config_folder: Folder of the YAML file.
    """

    def __init__(self, key: str, fields: TableFields, config_folder: Path) -> None:
        super().__init__(find(f"data.{key}.path", fields.path, config_folder), fields.features)
        self.key = key
        self.fields = fields

    def read(self, path: Path) -> Dataset:
        """Return the rows or windows of a file."""
        rows = self._rows(path)
        return rows if self.fields.window is None else self._windows(rows, 0, len(rows), path)

    def split(self, fraction: float, seed: int) -> tuple[Dataset, Dataset | None]:
        """Return two parts; of a time series, the second one is its end.

        Args:
            fraction: Size of the second part.
            seed: Seed of the random split of rows.
        """
        if self.fields.window is None or not fraction:
            return super().split(fraction, seed)
        rows = self._rows(self.path)
        end = len(rows) - round(len(rows) * fraction)
        parts = (0, end), (end, len(rows))
        first, second = (self._windows(rows, start, stop, self.path) for start, stop in parts)
        return self._with_features(first), self._with_features(second)

    def _windows(self, rows: Dataset, start: int, stop: int, path: Path) -> Dataset:
        batch = rows.batch(range(start, stop))
        inputs, targets = batch if isinstance(batch, tuple) else (batch, None)
        fields = self.fields
        assert fields.window is not None
        return SeriesWindows(
            inputs,
            targets,
            window=fields.window,
            horizon=fields.horizon,
            stride=fields.stride,
            where=str(path),
        )

    def _rows(self, path: Path) -> Dataset:
        suffix = "".join(path.suffixes[-2:]) if path.suffix in (".gz", ".bz2") else path.suffix
        if path.suffix == ".npz":
            return self._arrays(path)
        if suffix.startswith((".csv", ".tsv")) or path.suffix == ".parquet":
            return self._table(path)
        raise ArgumentError(
            f"data.{self.key}.path: {path} must be a .csv, .parquet or .npz file; safetensors and "
            "other arrays are data.arrays"
        )

    def _arrays(self, path: Path) -> Dataset:
        arrays = array_files.read_npz(path)
        names = (*(self.fields.inputs or ("inputs",)), *filter(None, [self.fields.target]))
        for name in names:
            if name not in arrays:
                hint = close_matches(name, arrays) or f"; it has {', '.join(arrays) or 'none'}"
                raise ArgumentError(f"data.{self.key}: {path} has no array {name!r}{hint}")
        return ArrayDataset(*[arrays[name] for name in names])

    def _table(self, path: Path) -> Dataset:
        from ember_ml.data.tables import CSVDataset, ParquetDataset

        fields = self.fields
        cls: Any = ParquetDataset if path.suffix == ".parquet" else CSVDataset
        known = self.labels if path != self.path else None
        columns = None if fields.inputs is None else list(fields.inputs)
        is_text = columns is not None and len(columns) == 1 and _is_text(cls, path, columns[0])
        dataset = cls(path, columns, fields.target, stack=not is_text, classes=known)
        self.check_labels(path, dataset.classes)
        return dataset.map(_Column(columns[0]), batched=True) if is_text and columns else dataset


class _Column:
    """Takes one column of the inputs of a batch.

    Args:
        name: Name of the column.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, batch: Any) -> Any:
        if isinstance(batch, tuple):
            return batch[0][self.name], *batch[1:]
        return batch[self.name]


def _is_text(cls: Any, path: Path, column: str) -> bool:
    """Return whether a column of a table has strings."""
    values = cls(path, [column], stack=False).batch([0])[column]
    return isinstance(values[0], str)


def source_of(data: Config, config_folder: Path) -> FileData:
    """Return the data that a config describes.

    Args:
        data: Config of the data.
        config_folder: Folder of the YAML file; files are also searched there.
    """
    if isinstance(data, AudioData):
        return AudioFiles(data.audio, config_folder)
    if isinstance(data, ImageData):
        return ImageFiles(data.images, config_folder)
    if isinstance(data, SeriesData):
        return TableRows("series", data.series, config_folder)
    assert isinstance(data, TableData)
    return TableRows("table", data.table, config_folder)
