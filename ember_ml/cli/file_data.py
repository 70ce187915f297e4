"""Datasets of audio folders, image folders, tables and time series."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any, Generic, TypeVar

from ember_ml._core import array_files
from ember_ml._core.errors import ArgumentError
from ember_ml.configs.base import Config
from ember_ml.configs.data_sources import AudioFields, ImageFields, TableFields
from ember_ml.configs.train_run import AudioData, ImageData, SeriesData, TableData
from ember_ml.data import ArrayDataset, Dataset, random_split
from ember_ml.data.series import SeriesWindows
from ember_ml.registry.base import close_matches

FILE_CONFIGS = (AudioData, ImageData, SeriesData, TableData)
"""Configs of the data that `source_of` reads."""
FolderFields = TypeVar("FolderFields", AudioFields, ImageFields)


def find_path(key: str, path: str, config_folder: Path, *, allow_folder: bool = False) -> Path:
    """Return the path of a file, which may be relative to the folder of the YAML file.

    Args:
        key: Key of the config, for the error message.
        path: The path.
        config_folder: Folder of the YAML file.
        allow_folder: Whether the path may be a folder.
    """
    for place in (Path(path).expanduser(), config_folder / path):
        if place.is_file() or (allow_folder and place.exists()):
            return place
    kind = "file or folder" if allow_folder else "file"
    raise ArgumentError(f"{key}: there is no {kind} {path}, neither here nor in {config_folder}")


class FileSource(abc.ABC):
    """Data in files: a dataset, its validation part, and other files with the same classes.

    Args:
        path: File or folder.
        features: Config of the features; None for the data itself.
    """

    labels: tuple[str, ...] | None = None
    """Labels of the classes, known after `read`; None without classes."""

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
        return self._with_features(
            self.read(find_path("validation", path, config_folder, allow_folder=True))
        )

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


class FolderSource(FileSource, Generic[FolderFields]):
    """Files in class folders, or of a manifest.

    Args:
        key: Key of the config, for error messages.
        fields: Config of the data.
        config_folder: Folder of the YAML file.
    """

    def __init__(self, key: str, fields: FolderFields, config_folder: Path) -> None:
        path = find_path(f"data.{key}.path", fields.path, config_folder, allow_folder=True)
        super().__init__(path, fields.features)
        self.key = key
        self.fields: FolderFields = fields
        self.config_folder = config_folder

    def manifest_of(self, path: Path) -> Path | None:
        """Return the manifest of a folder; None for another folder than that of the config.

        Args:
            path: The folder.
        """
        manifest = self.fields.manifest
        if manifest is None or path != self.path:
            return None
        return find_path(
            f"data.{self.key}.manifest", manifest, self.config_folder, allow_folder=True
        )


class AudioSource(FolderSource[AudioFields]):
    """Audio files of classes."""

    def read(self, path: Path) -> Dataset:
        """Return the dataset of a folder."""
        from ember_ml.data.audio import AudioFolder

        dataset = AudioFolder(
            path,
            self.manifest_of(path),
            sample_rate=self.fields.sample_rate,
            duration=self.fields.duration,
        )
        self.check_labels(path, dataset.classes or None)
        return dataset


class ImageSource(FolderSource[ImageFields]):
    """Image files of classes."""

    def read(self, path: Path) -> Dataset:
        """Return the dataset of a folder, with pixels between 0 and 1."""
        from ember_ml.data.vision import ImageFolder, Resize, ToFloat

        folder = ImageFolder(path, self.manifest_of(path), mode=self.fields.mode)
        self.check_labels(path, folder.classes or None)
        dataset: Dataset = folder
        size = self.fields.size
        if size is not None:
            dataset = dataset.map(Resize((size, size) if isinstance(size, int) else size))
        return dataset.map(ToFloat())


class TableSource(FileSource):
    """Rows of a table, or windows of a time series.

    Args:
        key: Key of the config, for error messages.
        fields: Config of the data.
        config_folder: Folder of the YAML file.
    """

    def __init__(self, key: str, fields: TableFields, config_folder: Path) -> None:
        path = find_path(f"data.{key}.path", fields.path, config_folder, allow_folder=True)
        super().__init__(path, fields.features)
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
    """Function from a batch to one column of its inputs.

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


def source_of(data: Config, config_folder: Path) -> FileSource:
    """Return the data that a config describes.

    Args:
        data: Config of the data.
        config_folder: Folder of the YAML file; files are also searched there.
    """
    if isinstance(data, AudioData):
        return AudioSource("audio", data.audio, config_folder)
    if isinstance(data, ImageData):
        return ImageSource("images", data.images, config_folder)
    if isinstance(data, SeriesData):
        return TableSource("series", data.series, config_folder)
    assert isinstance(data, TableData)
    return TableSource("table", data.table, config_folder)
