"""What is wrong with a configuration, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from ember_ml._core.errors import EmberError
from ember_ml.registry.base import close_matches


class Problem(NamedTuple):
    """A place in a configuration, as keys from the outside in, and what is wrong there."""

    path: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        where = ".".join(str(key) for key in self.path)
        return f"{where}: {self.message}" if where else self.message


class ConfigError(EmberError, ValueError):
    """A configuration that describes nothing that could be built."""

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
    """The problems of a part, seen from what it is a part of."""
    return [Problem((*path, *inner.path), inner.message) for inner in error.problems]


def problems_of(error: ValidationError, cls: type[BaseModel]) -> list[Problem]:
    """The problems that pydantic found, and those found in nested components."""
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        path = tuple(item["loc"])
        nested = item.get("ctx", {}).get("error")
        if isinstance(nested, ConfigError):
            found += below(nested, *path)
        else:
            found.append(Problem(path, _message(item, cls)))
    return found


def _message(item: Any, cls: type[BaseModel]) -> str:
    kind, given = item["type"], item["input"]
    if kind == "extra_forbidden":
        return f"there is no such key{close_matches(str(item['loc'][-1]), cls.model_fields)}"
    if kind == "missing":
        return "is missing"
    text = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return text if isinstance(given, Mapping) else f"{text}, not {given!r:.60}"
