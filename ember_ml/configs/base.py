"""The base class of configs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ember_ml.configs.errors import ConfigError, Problem, problems_of
from ember_ml.registry import base as registry_base
from ember_ml.registry import components


class Config(BaseModel):
    """A validated, immutable description of a component.

    Unknown keys, wrong types and values out of range raise a `ConfigError` that names the field.

    Example:
        >>> from ember_ml.configs.layers import DenseConfig
        >>> config = DenseConfig(in_features=4, out_features=2)
        >>> config == Config.from_yaml(config.to_yaml())
        True
        >>> config.create()(ops.ones((3, 4))).shape
        (3, 2)
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=True
    )
    component: ClassVar[str] = ""
    """Registry name of the component."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            cls = type(self)
            raise ConfigError(cls.__name__, problems_of(error, cls)) from None

    @classmethod
    def check(cls, values: dict[str, Any], owner: type) -> Self:
        """Return the config of the arguments of a class; errors name the class, not the config."""
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(owner.__name__, error.problems) from None

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Build and return the component.

        Args:
            *args: Arguments that are not part of the config, such as an optimizer's parameters.
            **kwargs: Arguments that replace fields of the config.
        """
        if not self.component:
            raise ConfigError(type(self).__name__, [Problem((), "describes no component")])
        target = components.get(self.component).target
        if isinstance(target, type):
            return target(*args, config=self, **kwargs)
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return target(*args, **{**fields, **kwargs})

    def to_dict(self) -> dict[str, Any]:
        """Return the config as plain data: dicts, lists, strings and numbers."""
        head = {"type": self.component} if self.component else {}
        return head | {
            name: _plain(getattr(self, name), (name,)) for name in type(self).model_fields
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], kind: str | None = None) -> Self:
        """Return the config described by plain data.

        Args:
            data: The fields, and the registry name under "type". "type" is optional on the config
                class of a component.
            kind: The kind that the component must have; "type" may then omit it.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(cls.__name__, [Problem((), f"must be a mapping, not {data!r:.60}")])
        values = {str(key): value for key, value in data.items()}
        config_cls = _class_of(cls, values.pop("type", None), kind)
        return config_cls(**values)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the config as JSON.

        Args:
            path: File to write the JSON to as well.
        """
        return _written(json.dumps(self.to_dict(), indent=2) + "\n", path)

    def to_yaml(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the config as YAML.

        Args:
            path: File to write the YAML to as well.
        """
        import yaml

        return _written(yaml.safe_dump(self.to_dict(), sort_keys=False), path)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Self:
        """Return the config in a JSON string or file.

        Args:
            source: JSON text, or the path of a file.
        """
        return cls.from_yaml(source)

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> Self:
        """Return the config in a YAML string or file.

        Args:
            source: YAML text (if it contains a line break or ": ", or starts with a brace), or the
                path of a file.
        """
        from ember_ml.configs import files

        return files.read(cls, source)

    def override(self, *changes: str, **values: Any) -> Self:
        """Return a copy with some values changed.

        Args:
            *changes: Changes of the form "dotted.key=value".
            **values: New values of fields.

        Example:
            >>> from ember_ml.configs.layers import DenseConfig
            >>> DenseConfig(in_features=4, out_features=2).override("out_features=8").out_features
            8
        """
        from ember_ml.configs.overrides import override

        data = override({**self.to_dict(), **values}, changes)
        return type(self).from_dict(data)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the data that `from_dict` accepts."""
        schema = cls.model_json_schema()
        schema.setdefault("properties", {})["type"] = {"const": cls.component}
        return schema


def _class_of(cls: type[Any], type_name: Any, kind: str | None) -> type[Any]:
    """Return the config class that "type" names, which must be `cls` or a subclass of it."""
    if type_name is None:
        if cls is Config:
            raise ConfigError("Config", [Problem(("type",), "is missing")])
        return cls
    if kind is None and cls.component and "/" not in str(type_name):
        kind = cls.component.partition("/")[0]
    try:
        entry = components.get(type_name, kind)
    except registry_base.UnknownComponentError as error:
        raise ConfigError(cls.__name__, [Problem(("type",), str(error))]) from None
    if not issubclass(entry.config, cls):
        raise ConfigError(
            cls.__name__, [Problem(("type",), f"must be {cls.component!r}, not {type_name!r}")]
        )
    return entry.config


def _plain(value: Any, path: tuple[str | int, ...]) -> Any:
    if isinstance(value, Config):
        return value.to_dict()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part, (*path, str(key))) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, (*path, at)) for at, part in enumerate(value)]
    own = getattr(value, "config", None)
    if isinstance(own, Config):
        return own.to_dict()
    raise ConfigError(
        "to_dict",
        [Problem(path, f"{value!r:.60} has no config: register its class and pass it by name")],
    )


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        from ember_ml._core.files import write_atomically

        write_atomically(path, text.encode())
    return text
