"""Config of a training run: model, data and duration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import PlainValidator, WithJsonSchema, model_validator

from ember_ml.configs import files
from ember_ml.configs.base import Config
from ember_ml.configs.data_sources import AudioFields, ImageFields, TableFields
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.fields import Below1, Size
from ember_ml.configs.training import TrainerConfig
from ember_ml.registry.base import close_matches

_MAPPING = WithJsonSchema({"type": "object"})
_ANY_VOCAB_SIZE = 256
"""Vocabulary size for validation, before the data is read."""


class TokenizerFields(Config):
    """Tokenizer to train on the text, or to load."""

    kind: Literal["char", "byte", "bpe", "byte_bpe", "char_bpe", "wordpiece"] = "char"
    """Kind of tokenizer; see `ember_ml.data.text.Tokenizer.train`."""
    vocab_size: Size | None = None
    """Maximum number of tokens; optional for char and byte."""
    lowercase: bool = False
    """Whether to convert the text to lower case."""
    path: str | None = None
    """Path of a tokenizer.json to load, instead of training one."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.path is not None and (self.kind != "char" or self.vocab_size or self.lowercase):
            raise ValueError("path: a tokenizer that is loaded takes no other settings")
        needs_size = self.path is None and self.kind not in ("char", "byte")
        if needs_size and self.vocab_size is None:
            raise ValueError(f"vocab_size: is missing for a tokenizer of kind {self.kind}")
        return self


def _tokenizer(value: object) -> TokenizerFields | None:
    """Return the config of a tokenizer: None, its kind or path, or a mapping."""
    if value is None or isinstance(value, TokenizerFields):
        return value
    if isinstance(value, str):
        value = {"path" if value.endswith(".json") else "kind": value}
    return TokenizerFields.from_dict(value)  # type: ignore[arg-type]


class TextFields(Config):
    """Text file."""

    path: str
    level: Literal["char"] = "char"
    """Unit of a token without `tokenizer`."""
    seq_len: Size = 128
    """Number of tokens of an example."""
    tokenizer: Annotated[TokenizerFields | None, PlainValidator(_tokenizer), _MAPPING] = None
    """Tokenizer: {kind: bpe, vocab_size: 1000}, or the path of a tokenizer.json. Default: a token
    for each character of the text."""


class ArrayFields(Config):
    """File of arrays; the first axis of each is the example."""

    path: str
    """Path of an .npz or a .safetensors file."""
    inputs: str = "inputs"
    """Name of the array of inputs."""
    targets: str | None = "targets"
    """Name of the array of targets; None if the model returns the loss."""


def _of(cls: type[Config]) -> PlainValidator:
    """Return a validator that accepts a config of a class or a mapping."""

    def read(value: Any) -> Config:
        return value if isinstance(value, cls) else cls.from_dict(value)

    return PlainValidator(read)


class TextData(Config):
    """Text data."""

    text: Annotated[TextFields, _of(TextFields), _MAPPING]


class ArrayData(Config):
    """Array data."""

    arrays: Annotated[ArrayFields, _of(ArrayFields), _MAPPING]


class AudioData(Config):
    """Audio data."""

    audio: Annotated[AudioFields, _of(AudioFields), _MAPPING]


class ImageData(Config):
    """Image data."""

    images: Annotated[ImageFields, _of(ImageFields), _MAPPING]


class TableData(Config):
    """Table or time series."""

    table: Annotated[TableFields, _of(TableFields), _MAPPING]


class SeriesData(Config):
    """Time series."""

    series: Annotated[TableFields, _of(TableFields), _MAPPING]


_DATA: dict[str, type[Config]] = {
    "text": TextData,
    "arrays": ArrayData,
    "audio": AudioData,
    "images": ImageData,
    "table": TableData,
    "series": SeriesData,
}


def data_of(value: object) -> Config:
    """Return the config of a task, or of data in files.

    Args:
        value: A config, the name of a task, or a mapping.
    """
    if isinstance(value, Config):
        return value
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping):
        raise ConfigError("data", [Problem((), f"must be a mapping, not {value!r:.60}")])
    if "type" in value:
        return Config.from_dict(value, kind="tasks")
    for name, cls in _DATA.items():
        if name in value:
            return cls.from_dict(value)
    hint = close_matches(next(map(str, value), ""), ("type", *_DATA))
    raise ConfigError(
        "data", [Problem((), f"must have one of the keys type (a task), {', '.join(_DATA)}{hint}")]
    )


def _model(value: object) -> dict[str, object]:
    """Validate a model, whose vocabulary size may be missing, and return its fields."""
    if isinstance(value, Config):
        value = value.to_dict()
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping):
        raise ConfigError("model", [Problem((), f"must be a mapping, not {value!r:.60}")])
    _with_vocab(value, _ANY_VOCAB_SIZE)
    return {str(key): part for key, part in value.items()}


def _with_vocab(fields: Mapping[str, object], vocab_size: int | None) -> Config:
    """Return the config of a model, with the vocabulary size if it is required and missing."""
    kind = None if "/" in str(fields.get("type", "")) else "models"
    if "type" not in fields:
        raise ConfigError("model", [Problem(("type",), "is missing")])
    try:
        return Config.from_dict(fields, kind=kind)
    except ConfigError as error:
        missing = [
            problem.path == ("vocab_size",) and "vocab_size" not in fields
            for problem in error.problems
        ]
        if vocab_size is None or not any(missing):
            raise
    return Config.from_dict({**fields, "vocab_size": vocab_size}, kind=kind)


class TrainRunConfig(Config):
    """Training run: model, data, trainer and duration."""

    model: Annotated[dict[str, object], PlainValidator(_model), _MAPPING]
    """Model, or another component by its full name. `vocab_size` defaults to that of the data."""
    data: Annotated[Config, PlainValidator(data_of), _MAPPING]
    """Task ({type: tasks/...}), or data in files: {text: {path: ...}}, and likewise arrays, audio,
    images, table and series."""
    trainer: Annotated[TrainerConfig, _of(TrainerConfig), _MAPPING] = TrainerConfig()
    """Options of the trainer. The default loss for tasks, text and classes is "cross_entropy"."""
    epochs: Size | None = None
    steps: Size | None = None
    batch_size: Size = 32
    validation: Below1 | str = 0.1
    """Fraction of the data held out for validation, or another file or folder. Of text and time
    series, it is the end. A task has its own split. 0 disables validation."""
    checkpoint_every: Size | None = None
    """Steps between two checkpoints. Default: one checkpoint per epoch."""
    out: str = "runs/train"
    """Folder of the checkpoints, the log and the vocabulary."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not isinstance(self.data, tuple(_DATA.values())) and isinstance(self.validation, str):
            raise ValueError("validation: tasks have their own split; a file is for other data")
        return self

    @classmethod
    def load(cls, path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Self:
        """Return the config in a YAML file.

        Args:
            path: Path of the file.
            changes: Changes such as "trainer.learning_rate=1e-3".
        """
        return files.load_as(cls, path, changes)

    def model_config_for(self, vocab_size: int | None) -> Config:
        """Return the model's config for data with `vocab_size` different tokens."""
        config = _with_vocab(self.model, vocab_size)
        own = getattr(config, "vocab_size", None)
        if vocab_size is not None and own is not None and own < vocab_size:
            problem = f"must be at least {vocab_size}, the number of tokens in the data, not {own}"
            raise ConfigError(type(self).__name__, [Problem(("model", "vocab_size"), problem)])
        return config
