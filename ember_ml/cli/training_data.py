"""The data of a training, as its config says."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ember_ml._core import array_files
from ember_ml._core.errors import ArgumentError
from ember_ml.cli.text import TextWindows, Vocabulary, read_text
from ember_ml.configs.train_run import ArrayData, ArrayFields, TextData, TextFields, TrainRunConfig
from ember_ml.data import ArrayDataset, Dataset, random_split
from ember_ml.registry.base import close_matches


class Prepared(NamedTuple):
    """What a training reads."""

    train: Dataset
    validation: Dataset | None
    vocab_size: int | None = None
    vocabulary: Vocabulary | None = None
    """Of text."""


def prepare(config: TrainRunConfig, beside: Path, vocabulary: Vocabulary | None) -> Prepared:
    """The data of a training.

    Args:
        config: of the training.
        beside: the folder of its file, where data is looked for that is not found as named.
        vocabulary: the one of a training that is gone on with.
    """
    if isinstance(config.data, TextData):
        return _text(config.data.text, config, beside, vocabulary)
    if isinstance(config.data, ArrayData):
        return _arrays(config.data.arrays, config, beside)
    task = config.data.create()
    return Prepared(task.train, task.validation if config.validation else None, task.vocab_size)


def _find(key: str, path: str, beside: Path) -> Path:
    places = [Path(path).expanduser(), beside / path]
    for place in places:
        if place.is_file():
            return place
    raise ArgumentError(f"{key}: there is no file {path}, neither here nor in {beside}")


def _text(
    fields: TextFields, config: TrainRunConfig, beside: Path, vocabulary: Vocabulary | None
) -> Prepared:
    path = _find("data.text.path", fields.path, beside)
    text = read_text(path)
    vocabulary = vocabulary or Vocabulary.of(text)
    ids = vocabulary.encode(text, str(path))
    held: list[int] = []
    if isinstance(config.validation, str):
        other = _find("validation", config.validation, beside)
        held = vocabulary.encode(read_text(other), str(other))
    elif config.validation:
        end = len(ids) - max(fields.seq_len + 1, round(len(ids) * config.validation))
        ids, held = ids[: max(0, end)], ids[max(0, end) :]
    validation = TextWindows(held, fields.seq_len, f"validation of {path}") if held else None
    train = TextWindows(ids, fields.seq_len, str(path))
    return Prepared(train, validation, len(vocabulary), vocabulary)


def _arrays(fields: ArrayFields, config: TrainRunConfig, beside: Path) -> Prepared:
    whole = _dataset(fields, _find("data.arrays.path", fields.path, beside))
    if isinstance(config.validation, str):
        return Prepared(whole, _dataset(fields, _find("validation", config.validation, beside)))
    count = round(len(whole) * config.validation)
    if not count:
        return Prepared(whole, None)
    train, held = random_split(whole, [len(whole) - count, count], seed=config.trainer.seed or 0)
    return Prepared(train, held)


def _dataset(fields: ArrayFields, path: Path) -> ArrayDataset:
    arrays = _read(path)
    chosen = []
    for key, name in (("inputs", fields.inputs), ("targets", fields.targets)):
        if name is not None and name not in arrays:
            hint = close_matches(name, arrays) or f"; it has {', '.join(arrays) or 'none'}"
            raise ArgumentError(f"data.arrays.{key}: {path} has no array {name!r}{hint}")
        chosen += [] if name is None else [arrays[name]]
    return ArrayDataset(*chosen)


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".npz":
        return array_files.read_npz(path)
    if path.suffix == ".safetensors":
        try:
            found = array_files.deserialize(path)
        except Exception as error:  # the library raises classes of its own
            raise ArgumentError(f"{path} is no safetensors file: {error}") from None
        return {name: array for name, (array, _) in found.items()}
    raise ArgumentError(f"data.arrays.path: {path} must be an .npz or a .safetensors file")
