"""The config of a whole training: a model, data, and for how long."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from ember_ml.configs import files
from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.fields import Size
from ember_ml.configs.training import TrainerConfig
from ember_ml.registry.base import close_matches

_MAPPING = WithJsonSchema({"type": "object"})
_SOME = 256
"""A vocabulary's size while the data's own is not known."""


class TextFields(Config):
    """A file of text."""

    path: str
    level: Literal["char"] = "char"
    """What a token is."""
    seq_len: Size = 128
    """Tokens of an example."""


class ArrayFields(Config):
    """A file of arrays, whose first axis is that of the examples."""

    path: str
    """Of an .npz or a .safetensors file."""
    inputs: str = "inputs"
    """Which array the model is given."""
    targets: str | None = "targets"
    """Which one is to be said; none if the model gives the loss itself."""


def _of(cls: type[Config]) -> Any:
    """Reads a config of a class."""

    def make(value: Any) -> Any:
        return value if isinstance(value, cls) else cls.from_dict(value)

    return PlainValidator(make)


class TextData(Config):
    """Data that is text."""

    text: Annotated[TextFields, _of(TextFields), _MAPPING]


class ArrayData(Config):
    """Data that is arrays."""

    arrays: Annotated[ArrayFields, _of(ArrayFields), _MAPPING]


_DATA: dict[str, type[Config]] = {"text": TextData, "arrays": ArrayData}


def _data(value: Any) -> Any:
    """A task, text or arrays."""
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
        "data", [Problem((), f"must have one of the keys type (a task), text, arrays{hint}")]
    )


def _model(value: Any) -> dict[str, Any]:
    """The fields of a model, which are right but for a vocabulary's size that is not given."""
    if isinstance(value, Config):
        value = value.to_dict()
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, Mapping):
        raise ConfigError("model", [Problem((), f"must be a mapping, not {value!r:.60}")])
    _with_vocab(value, _SOME)
    return {str(key): part for key, part in value.items()}


def _with_vocab(fields: Mapping[str, Any], vocab_size: int | None) -> Config:
    """The config of a model, with the vocabulary's size where it is needed and not given."""
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


Share = Annotated[float, Field(ge=0, lt=1)]


class TrainRunConfig(Config):
    """A training from beginning to end."""

    model: Annotated[dict[str, Any], PlainValidator(_model), _MAPPING]
    """One of the models, or a component of another kind by its whole name. The size of the
    vocabulary may be left to the data."""
    data: Annotated[Any, PlainValidator(_data), _MAPPING]
    """A task ({type: tasks/...}), text ({text: {path: ...}}) or arrays ({arrays: {path: ...}})."""
    trainer: Annotated[TrainerConfig, _of(TrainerConfig), _MAPPING] = TrainerConfig()
    """Of tasks and text, the loss is "cross_entropy" if none is named."""
    epochs: Size | None = None
    steps: Size | None = None
    batch_size: Size = 32
    validation: Share | str = 0.1
    """The share of text or arrays that is kept apart, or another file; a task has its own split.
    With 0 there is none."""
    checkpoint_every: Size | None = None
    """Steps from one checkpoint to the next; each epoch has one if not given."""
    out: str = "runs/train"
    """The folder of the checkpoints, the log and the vocabulary."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not isinstance(self.data, (TextData, ArrayData)) and isinstance(self.validation, str):
            raise ValueError("validation: a task has its own split; a file is for text and arrays")
        return self

    @classmethod
    def load(cls, path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Self:
        """The config in a YAML file, with "dotted.key=value" changes made."""
        return files.load_as(cls, path, changes)

    def model_config_for(self, vocab_size: int | None) -> Config:
        """The model's config, for data with so many different tokens."""
        made = _with_vocab(self.model, vocab_size)
        own = getattr(made, "vocab_size", None)
        if vocab_size is not None and own is not None and own < vocab_size:
            problem = f"must be at least {vocab_size}, the number of tokens in the data, not {own}"
            raise ConfigError(type(self).__name__, [Problem(("model", "vocab_size"), problem)])
        return made
