"""Datasets of a training run, loaded as its config describes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ember_ml._core import array_files
from ember_ml._core.errors import ArgumentError
from ember_ml._core.safetensors_files import SafetensorsError
from ember_ml._core.types import NativeArray
from ember_ml.cli import file_data
from ember_ml.cli.file_data import FILE_CONFIGS, find_path
from ember_ml.cli.text_encoders import TextEncoder, encode
from ember_ml.configs.pipeline_run import PipelineRunConfig
from ember_ml.configs.train_run import (
    ArrayData,
    ArrayFields,
    TextData,
    TextFields,
    TokenizerFields,
    TrainRunConfig,
)
from ember_ml.data import ArrayDataset, Dataset, Subset, random_split
from ember_ml.data.text import Tokenizer, TokenWindows, Vocabulary
from ember_ml.data.text.lines import read_text
from ember_ml.registry.base import close_matches


class TrainingData(NamedTuple):
    """Datasets of a training run."""

    train: Dataset
    validation: Dataset | None
    vocab_size: int | None = None
    encoder: TextEncoder | None = None
    """Tokenizer or vocabulary of text data."""
    labels: tuple[str, ...] | None = None
    """Labels of the classes."""


def load_pipeline_data(
    config: PipelineRunConfig, config_folder: Path, *, split: bool
) -> TrainingData:
    """Return the datasets of `ember pipeline run`.

    Args:
        config: Config of the command.
        config_folder: Folder of the YAML file; data files are also searched there.
        split: Whether to hold out the validation data; otherwise all data is in `train`.
    """
    validation = config.validation if split else 0.0
    seed = _seed(config.pipeline)
    if isinstance(config.data, FILE_CONFIGS):
        source = file_data.source_of(config.data, config_folder)
        return TrainingData(*_split(source, validation, seed, config_folder), labels=source.labels)
    assert isinstance(config.data, ArrayData)
    return _arrays(config.data.arrays, validation, seed, config_folder)


class SelfTrainingData(NamedTuple):
    """Datasets of a self-training run."""

    labeled: Dataset
    unlabeled: Dataset
    validation: Dataset | None
    labels: tuple[str, ...] | None


def load_self_training_data(config: PipelineRunConfig, config_folder: Path) -> SelfTrainingData:
    """Return the datasets of `ember pipeline run` with a self-training pipeline.

    Args:
        config: Config of the command.
        config_folder: Folder of the YAML file; data files are also searched there.
    """
    data = load_pipeline_data(config, config_folder, split=False)
    labeled, unlabeled = data.train, None
    if config.unlabeled is not None:
        unlabeled = _other(config, config.unlabeled, config_folder, targets=False)
    else:
        labeled, unlabeled = _by_target(data.train)
    if isinstance(config.validation, str):
        held_out = _other(config, config.validation, config_folder, targets=True)
        return SelfTrainingData(labeled, unlabeled, held_out, data.labels)
    count = round(len(labeled) * config.validation)
    if not count:
        return SelfTrainingData(labeled, unlabeled, None, data.labels)
    sizes = [len(labeled) - count, count]
    train, rest = random_split(labeled, sizes, seed=_seed(config.pipeline))
    return SelfTrainingData(train, unlabeled, rest, data.labels)


def _other(config: PipelineRunConfig, path: str, config_folder: Path, *, targets: bool) -> Dataset:
    """Return the dataset of another file of the same kind."""
    if isinstance(config.data, ArrayData):
        fields = config.data.arrays
        fields = fields if targets else fields.override(targets=None)
        return _dataset(fields, find_path("unlabeled", path, config_folder))
    source = file_data.source_of(config.data, config_folder)
    source.dataset()  # its classes are those of the other file
    return source.other(path, config_folder)


def _by_target(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Return the examples with a target, and those whose target is negative."""
    targets = [dataset[index][1] for index in range(len(dataset))]
    parts: list[list[int]] = [[], []]
    for index, target in enumerate(targets):
        parts[int(target < 0)].append(index)
    if not parts[1]:
        raise ArgumentError(
            "unlabeled: no target of the data is negative; name a file of unlabeled inputs, or "
            "mark unlabeled examples with the target -1"
        )
    return Subset(dataset, parts[0]), Subset(dataset, parts[1])


def _seed(pipeline: object) -> int:
    return getattr(getattr(pipeline, "trainer", None), "seed", None) or 0


def load_data(
    config: TrainRunConfig, config_folder: Path, encoder: TextEncoder | None
) -> TrainingData:
    """Return the datasets of a training run.

    Args:
        config: Config of the training run.
        config_folder: Folder of the YAML file; data files are also searched there.
        encoder: Tokenizer or vocabulary of a resumed run. Default: that of the text.
    """
    seed = config.trainer.seed or 0
    if isinstance(config.data, TextData):
        return _text(config.data.text, config, config_folder, encoder)
    if isinstance(config.data, ArrayData):
        return _arrays(config.data.arrays, config.validation, seed, config_folder)
    if isinstance(config.data, FILE_CONFIGS):
        source = file_data.source_of(config.data, config_folder)
        parts = _split(source, config.validation, seed, config_folder)
        return TrainingData(*parts, labels=source.labels)
    task = config.data.create()
    return TrainingData(task.train, task.validation if config.validation else None, task.vocab_size)


def _split(
    source: file_data.FileSource, validation: float | str, seed: int, config_folder: Path
) -> tuple[Dataset, Dataset | None]:
    """Return training and validation data of files."""
    if isinstance(validation, str):
        return source.dataset(), source.other(validation, config_folder)
    return source.split(validation, seed)


def _text(
    fields: TextFields,
    config: TrainRunConfig,
    config_folder: Path,
    encoder: TextEncoder | None,
) -> TrainingData:
    path = find_path("data.text.path", fields.path, config_folder)
    text = read_text(path)
    if encoder is None:
        share = 0.0 if isinstance(config.validation, str) else config.validation
        known = text[: len(text) - round(len(text) * share)]  # before the validation part
        encoder = _new_encoder(fields.tokenizer, text, known, config_folder)
    ids = encode(encoder, text, str(path))
    held_out: list[int] = []
    if isinstance(config.validation, str):
        other = find_path("validation", config.validation, config_folder)
        held_out = encode(encoder, read_text(other), str(other))
    elif config.validation:
        end = len(ids) - max(fields.seq_len + 1, round(len(ids) * config.validation))
        ids, held_out = ids[: max(0, end)], ids[max(0, end) :]
    where = f"validation of {path}"
    validation = TokenWindows(held_out, fields.seq_len, where) if held_out else None
    train = TokenWindows(ids, fields.seq_len, str(path))
    return TrainingData(train, validation, encoder.vocab_size, encoder)


def _new_encoder(
    fields: TokenizerFields | None, text: str, known: str, config_folder: Path
) -> TextEncoder:
    """Return the tokenizer that the config describes, or the vocabulary of the text.

    A tokenizer is trained on the known part only. The vocabulary has the characters of the whole
    text: those of the validation part must not be errors.
    """
    if fields is None or fields.to_dict() == TokenizerFields().to_dict():
        return Vocabulary.of(text)
    if fields.path is not None:
        return Tokenizer.load(find_path("data.text.tokenizer.path", fields.path, config_folder))
    return Tokenizer.train(
        known.splitlines(keepends=True), fields.kind, fields.vocab_size, lowercase=fields.lowercase
    )


def _arrays(
    fields: ArrayFields, validation: float | str, seed: int, config_folder: Path
) -> TrainingData:
    dataset = _dataset(fields, find_path("data.arrays.path", fields.path, config_folder))
    if isinstance(validation, str):
        return TrainingData(
            dataset, _dataset(fields, find_path("validation", validation, config_folder))
        )
    count = round(len(dataset) * validation)
    if not count:
        return TrainingData(dataset, None)
    train, held_out = random_split(dataset, [len(dataset) - count, count], seed=seed)
    return TrainingData(train, held_out)


def _dataset(fields: ArrayFields, path: Path) -> ArrayDataset:
    arrays = _read(path)
    selected = []
    for key, name in (("inputs", fields.inputs), ("targets", fields.targets)):
        if name is not None and name not in arrays:
            hint = close_matches(name, arrays) or f"; it has {', '.join(arrays) or 'none'}"
            raise ArgumentError(f"data.arrays.{key}: {path} has no array {name!r}{hint}")
        selected += [] if name is None else [arrays[name]]
    return ArrayDataset(*selected)


def _read(path: Path) -> dict[str, NativeArray]:
    if path.suffix == ".npz":
        return array_files.read_npz(path)
    if path.suffix == ".safetensors":
        try:
            contents = array_files.deserialize(path)
        except (OSError, SafetensorsError) as error:
            raise ArgumentError(str(error)) from None
        return {name: array for name, (array, _) in contents.items()}
    raise ArgumentError(f"data.arrays.path: {path} must be an .npz or a .safetensors file")
