"""Errors in configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ember_ml._core.errors import EmberError
from ember_ml.registry.base import close_matches


class Problem(NamedTuple):
    """What is wrong with a config, and the path of keys to the place."""

    path: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        where = ".".join(str(key) for key in self.path)
        return f"{where}: {self.message}" if where else self.message


class ConfigError(EmberError, ValueError):
    """Raised for an invalid config; `problems` lists everything that is wrong."""

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        self.title = title
        self.problems = list(problems)
        super().__init__(title)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.title}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.title}: {len(self.problems)} problems{lines}"


def below(error: ConfigError, *path: str | int) -> list[Problem]:
    """Return the problems of a nested config, with the path to it prepended."""
    return [Problem((*path, *inner.path), inner.message) for inner in error.problems]


def problems_of(error: ValidationError, cls: type[BaseModel]) -> list[Problem]:
    """Return the problems that pydantic reports, including those of nested components."""
    problems: list[Problem] = []
    for item in error.errors(include_url=False):
        path = tuple(item["loc"])
        nested = item.get("ctx", {}).get("error")
        if isinstance(nested, ConfigError):
            problems += below(nested, *path)
        else:
            problems.append(Problem(path, _message(item, cls)))
    return problems


def _message(item: Any, cls: type[BaseModel]) -> str:
    kind, given = item["type"], item["input"]
    if kind == "extra_forbidden":
        return f"there is no such key{close_matches(str(item['loc'][-1]), cls.model_fields)}"
    if kind == "missing":
        return "is missing"
    text = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return text if isinstance(given, Mapping) else f"{text}, not {given!r:.60}"
