"""Stages of a pipeline in configs: components by name, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem, below
from ember_ml.configs.fields import Component, ComponentLike

_COMPONENT = Component()


def check_stages(value: Any) -> dict[str, Any]:
    """Return stages by name, with the config of each that is given by a name or a mapping.

    Args:
        value: Name -> stage, or a list of stages, whose names are those of their components.
    """
    if isinstance(value, Mapping) and "type" not in value:
        given = {str(name): stage for name, stage in value.items()}
    elif isinstance(value, Sequence) and not isinstance(value, str):
        given = _named(value)
    else:
        raise ConfigError(
            "stages",
            [Problem((), f"must be a list of stages, or stages by name, not {value!r:.60}")],
        )
    stages, problems = {}, []
    for name, stage in given.items():
        try:
            stages[check_name(name)] = _COMPONENT._checked(stage)
        except ConfigError as error:
            problems += below(error, name)
    if problems:
        raise ConfigError("stages", problems)
    return stages


def _named(stages: Sequence[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for stage in stages:
        named[unique_name(default_name(stage), named)] = stage
    return named


def check_name(name: str) -> str:
    """Return the name of a stage; raise a ConfigError unless it is non-empty and has no dots.

    Args:
        name: Name of the stage.
    """
    if not isinstance(name, str) or not name or "." in name:
        problem = f"the name of a stage must be a non-empty string without dots, not {name!r:.60}"
        raise ConfigError("stages", [Problem((), problem)])
    return name


def default_name(stage: Any) -> str:
    """Return the name of a stage that is added without one: that of its component or function.

    Args:
        stage: Stage: a component, its config, its registry name, or a function.
    """
    if isinstance(stage, Mapping):
        stage = stage.get("type", "stage")
    config = stage if isinstance(stage, Config) else getattr(stage, "config", None)
    if isinstance(config, Config):
        stage = config.component
    if not isinstance(stage, str):
        stage = getattr(stage, "__name__", None) or _snake_case(type(stage).__name__)
    return re.sub(r"\W", "_", str(stage).rpartition("/")[2]).strip("_") or "stage"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def unique_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name, with a number if it is taken.

    Args:
        name: The name.
        taken: Names that are in use.
    """
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


StagesLike: TypeAlias = Mapping[str, ComponentLike] | Sequence[ComponentLike]
"""Stages of a pipeline: a list, or stages by name."""
StagesField = Annotated[
    StagesLike,
    PlainValidator(check_stages),
    WithJsonSchema({"type": ["object", "array"], "description": "stages, by name or in a list"}),
]
"""A parameter that takes the stages of a pipeline; a dict in the config."""
