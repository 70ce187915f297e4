"""Settings in a config.json of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml.nn.models.convert.errors import ConversionError


class Settings:
    """Values of a config.json, and the problems found in them.

    A missing value and null mean the default of transformers, which the caller passes.

    Args:
        where: Path of the file, for error messages.
        values: Content of the file.
    """

    def __init__(self, where: str, values: Mapping[str, Any]) -> None:
        self.where = where
        self.values = values
        self.problems: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value of any type."""
        value = self.values.get(name)
        return default if value is None else value

    def size(self, name: str, default: int | None = None) -> int:
        """Return an integer of at least 1."""
        value = self.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        problem = "is missing" if value is None else f"must be an integer above 0, not {value!r}"
        self.problems.append(f"{name} {problem}")
        return 1

    def number(self, name: str, default: float) -> float:
        """Return a number of at least 0."""
        value = self.get(name, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
            return float(value)
        self.problems.append(f"{name} must be a number of at least 0, not {value!r}")
        return default

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean."""
        value = self.get(name, default)
        if isinstance(value, bool):
            return value
        self.problems.append(f"{name} must be true or false, not {value!r}")
        return default

    def expect(self, name: str, wanted: object, default: object = None) -> None:
        """Note a problem if a value is not the only supported one."""
        value = self.get(name, default)
        if value != wanted:
            self.problems.append(f"{name}={value!r} is not supported, only {wanted!r}")

    def check(self) -> None:
        """Raise a ConversionError if there are problems."""
        if self.problems:
            raise ConversionError(f"{self.where} cannot be converted", self.problems)
