"""What a config.json of transformers says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml.nn.models.convert.errors import ConversionError


class Settings:
    """The values of a config.json, and what in them stands in the way.

    A value that is missing or null is transformers' default, which the reader gives.

    Args:
        where: the file, for the errors.
        values: what it holds.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self.values = values
        self.problems: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """A value of any type."""
        value = self.values.get(name)
        return default if value is None else value

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number of at least 1."""
        value = self.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        said = "is missing" if value is None else f"must be a whole number above 0, not {value!r}"
        self.problems.append(f"{name} {said}")
        return 1

    def number(self, name: str, default: float) -> float:
        """A number that is not below 0."""
        value = self.get(name, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return float(value)
        self.problems.append(f"{name} must be a number of at least 0, not {value!r}")
        return default

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if isinstance(value, bool):
            return value
        self.problems.append(f"{name} must be true or false, not {value!r}")
        return default

    def expect(self, name: str, wanted: Any, default: Any = None) -> None:
        """Note a problem if a value is not the only one that is supported."""
        value = self.get(name, default)
        if value != wanted:
            self.problems.append(f"{name}={value!r} is not supported, only {wanted!r}")

    def check(self) -> None:
        """Raise what was noted."""
        if self.problems:
            raise ConversionError(f"{self.where} cannot be converted", self.problems)
