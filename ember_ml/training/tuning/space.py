"""Search spaces over configs, declared by dotted keys."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ember_ml.configs import files
from ember_ml.configs.overrides import override
from ember_ml.registry.base import close_matches
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.known_keys import with_parents
from ember_ml.training.tuning.ranges import Choice, Range, Uniform, from_data

Params = dict[str, Any]
"""Values of the active hyperparameters, by dotted key."""


class SearchSpace(Mapping[str, Range]):
    """Hyperparameters and their ranges, by the dotted keys of a config.

    An entry with a condition (`when`) is active only if the other keys have the given values.
    Inactive entries have no value in a sample.

    Args:
        entries: Range of each key: a `Float`, an `Integer`, a `Choice`, a list of values, or plain
            data such as `{"float": [1e-4, 1e-1], "log": True}`.

    Example:
        >>> import random
        >>> from ember_ml.training.tuning import Choice, Float, SearchSpace
        >>> space = SearchSpace({
        ...     "trainer.learning_rate": Float(1e-4, 1e-1, log=True),
        ...     "trainer.optimizer.type": Choice(["adamw", "sgd"]),
        ...     "trainer.optimizer.momentum": Float(
        ...         0.0, 0.95, when={"trainer.optimizer.type": "sgd"}
        ...     ),
        ... })
        >>> sorted(space.sample(random.Random(1)))
        ['trainer.learning_rate', 'trainer.optimizer.momentum', 'trainer.optimizer.type']
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        if not isinstance(entries, Mapping) or not entries:
            raise TuningError(
                f"SearchSpace: entries must be a mapping with at least one key, not {entries!r:.60}"
            )
        for key in entries:
            if not isinstance(key, str) or not all(key.split(".")):
                raise TuningError(
                    f"SearchSpace: a key must be dotted, as in 'trainer.learning_rate', not {key!r}"
                )
        self._entries = {key: from_data(key, data) for key, data in entries.items()}
        self.order = self._sorted()

    def __getitem__(self, key: str) -> Range:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {key}: {entry!r}" for key, entry in self.items())
        return f"SearchSpace({lines}\n)"

    def _sorted(self) -> list[str]:
        """Return the keys in an order in which each follows those its condition names."""
        order: list[str] = []

        def add(key: str, path: tuple[str, ...]) -> None:
            if key in path:
                cycle = " -> ".join((*path, key))
                raise TuningError(f"SearchSpace: the conditions depend on each other: {cycle}")
            for other, values in self[key].when.items():
                self._check_condition(key, other, values)
                add(other, (*path, key))
            if key not in order:
                order.append(key)

        for key in self:
            add(key, ())
        return order

    def _check_condition(self, key: str, other: str, values: tuple[Any, ...]) -> None:
        """Raise an error if an entry depends on a key or a value that the space does not have."""
        if other not in self:
            raise TuningError(
                f"SearchSpace: {key}: the condition names {other!r}, which is not a key of the "
                f"space{close_matches(other, self)}"
            )
        wrong = [value for value in values if not self[other].contains(value)]
        if wrong or not values:
            raise TuningError(
                f"SearchSpace: {key}: the condition can never hold: {other} has the range "
                f"{self[other]!r}, not the values {list(wrong)}"
            )

    def is_active(self, key: str, params: Mapping[str, Any]) -> bool:
        """Return whether a key has a value, given the values of the keys it depends on.

        Args:
            key: Key of the space.
            params: Values of the other keys.
        """
        return all(
            other in params and params[other] in values for other, values in self[key].when.items()
        )

    def sample(self, rng: Uniform) -> Params:
        """Draw values of the active keys.

        Args:
            rng: Source of random numbers: `random.Random`, or NumPy's `Generator`. It is called
                once for each key, active or not.
        """
        return self.at({key: float(rng.random()) for key in self.order})

    def at(self, positions: Mapping[str, float]) -> Params:
        """Return the values at positions in [0, 1].

        Args:
            positions: Position of each key; those of inactive keys are ignored.
        """
        params: Params = {}
        for key in self.order:
            if self.is_active(key, params):
                params[key] = self[key].at(positions[key])
        return {key: params[key] for key in self if key in params}

    def near(self, params: Mapping[str, Any], rng: Uniform, keep: float = 0.7) -> Params:
        """Return a neighbor of some values: each value is kept, or drawn again.

        Args:
            params: Values by dotted key.
            rng: Source of random numbers.
            keep: Probability of keeping a value.
        """
        result: Params = {}
        for key in self.order:
            kept = float(rng.random()) < keep and key in params
            drawn = self[key].sample(rng)
            if self.is_active(key, result):
                result[key] = params[key] if kept else drawn
        return {key: result[key] for key in self if key in result}

    def check(self, params: Mapping[str, Any]) -> Params:
        """Return values in the order of the space; raise an error if they are not of the space.

        Args:
            params: Values by dotted key.
        """
        for key, value in params.items():
            if key not in self:
                raise TuningError(f"SearchSpace: there is no key {key!r}{close_matches(key, self)}")
            if not self[key].contains(value):
                raise TuningError(f"SearchSpace: {key}: {value!r:.60} is not in {self[key]!r}")
        for key in self:
            if self.is_active(key, params) != (key in params):
                problem = "is inactive" if key in params else "has no value"
                raise TuningError(f"SearchSpace: {key} {problem} in {dict(params)!r:.200}")
        return {key: params[key] for key in self if key in params}

    def apply(self, base: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a config with the values of hyperparameters.

        Args:
            base: Config as nested dicts and lists.
            params: Values by dotted key.

        Raises:
            TuningError: If a value is not in the space.
            ConfigError: If the config has no such key; the error lists similar ones.
        """
        values = self.check(params)
        keys = sorted(values, key=lambda key: (key.count("."), not key.endswith(".type")))
        result: dict[str, Any] = dict(base)
        for key in keys:  # a component's type before its fields
            result = override(with_parents(result, key), {key: values[key]})
        return result

    def encode(self, params: Mapping[str, Any]) -> list[float]:
        """Return numbers that represent values, for models of the score.

        Inactive keys are encoded as 0.5 (numbers) or zeros (choices); a conditional key has one
        more number, which is 1 if it is active.

        Args:
            params: Values by dotted key.
        """
        row: list[float] = []
        for key, entry in self.items():
            active = key in params
            neutral = [0.0 if isinstance(entry, Choice) else 0.5] * entry.width
            row += entry.encode(params[key]) if active else neutral
            if entry.when:
                row.append(float(active))
        return row

    def columns(self) -> dict[str, slice]:
        """Return the columns of `encode` that belong to each key."""
        columns, start = {}, 0
        for key, entry in self.items():
            stop = start + entry.width + bool(entry.when)
            columns[key], start = slice(start, stop), stop
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain data."""
        return {key: entry.to_dict() for key, entry in self.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SearchSpace:
        """Return the space that plain data describes.

        Args:
            data: Range of each dotted key, as `to_dict` returns it.
        """
        return cls(data)

    def to_yaml(self) -> str:
        """Return the space as YAML."""
        import yaml

        return str(yaml.safe_dump(self.to_dict(), sort_keys=False))

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> SearchSpace:
        """Return the space in YAML text or a file.

        Args:
            source: YAML text (if it contains a line break or ": "), or the path of a file.
        """
        if isinstance(source, str) and ("\n" in source or ": " in source):
            return cls(files.parse(source, "SearchSpace"))
        return cls(files.parse(Path(source).read_text(encoding="utf-8"), str(source)))

    def fingerprint(self) -> str:
        """Return a digest that is equal for equal spaces."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, other: SearchSpace) -> list[str]:
        """Return a sentence for each key in which another space differs; empty if it is equal.

        Args:
            other: The other space.
        """
        found = [f"{key} is missing in the other space" for key in self if key not in other]
        found += [f"{key} is only in the other space" for key in other if key not in self]
        for key in self:
            if key in other and self[key] != other[key]:
                found.append(f"{key} is {self[key]!r}, in the other space {other[key]!r}")
        return found
