"""Ranges of hyperparameters: real numbers, integers and choices."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ember_ml.data.errors import check_integer
from ember_ml.training.tuning.errors import TuningError

When = dict[str, tuple[Any, ...]]
"""Values that other keys must have for an entry to be active."""


class Uniform(Protocol):
    """Source of random numbers, such as `random.Random` or NumPy's `Generator`."""

    def random(self) -> float:
        """Return a number in [0, 1)."""


class Range(ABC):
    """Values that a hyperparameter may take.

    Args:
        when: Condition under which the hyperparameter is active: the values, or the list of
            values, that other keys must have. Default: always active.
    """

    name: ClassVar[str]
    """Key of the range in plain data, such as "float"."""

    def __init__(self, when: Mapping[str, Any] | None = None) -> None:
        if when is not None and not isinstance(when, Mapping):
            raise TuningError(
                f"{type(self).__name__}: when must map keys to values, as in {{'optimizer.type': "
                f"'sgd'}}, not {when!r:.60}"
            )
        self.when: When = {
            str(key): tuple(values) if isinstance(values, (list, tuple)) else (values,)
            for key, values in (when or {}).items()
        }

    @abstractmethod
    def at(self, position: float) -> Any:
        """Return the value at a position in [0, 1]: equal parts of it are equally likely."""

    @abstractmethod
    def encode(self, value: Any) -> list[float]:
        """Return numbers in [0, 1] that represent a value, for models of the score."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Length of an encoded value."""

    @abstractmethod
    def contains(self, value: Any) -> bool:
        """Return whether the range has a value."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Return the range as plain data, without its condition."""

    def to_dict(self) -> dict[str, Any]:
        """Return the range as plain data."""
        when = {key: list(values) for key, values in self.when.items()}
        return self.fields() | ({"when": when} if when else {})

    def sample(self, rng: Uniform) -> Any:
        """Draw a value.

        Args:
            rng: Source of random numbers.
        """
        return self.at(float(rng.random()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __repr__(self) -> str:
        parts = {key: value for key, value in self.to_dict().items() if key != self.name}
        bounds = ", ".join(map(repr, self._positional()))
        return f"{type(self).__name__}({bounds}{''.join(f', {k}={v!r}' for k, v in parts.items())})"

    @abstractmethod
    def _positional(self) -> Sequence[Any]:
        """Return the positional arguments, for `repr`."""


class Float(Range):
    """Real numbers from `low` to `high`.

    Args:
        low: Smallest value.
        high: Largest value.
        log: Whether the logarithm is distributed uniformly. `low` must then be positive.
        when: Values that other keys must have for the hyperparameter to be active.

    Example:
        >>> Float(1e-4, 1e-2, log=True).at(0.5)
        0.001
    """

    name = "float"

    def __init__(
        self, low: float, high: float, log: bool = False, *, when: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(when)
        self.low, self.high = _number("Float", "low", low), _number("Float", "high", high)
        self.log = log
        if self.low >= self.high:
            raise TuningError(f"Float: low ({low}) must be less than high ({high})")
        if not math.isfinite(self.high - self.low):
            raise TuningError(f"Float: the distance from low ({low}) to high ({high}) overflows")
        _check_log("Float", self.low, log)

    def at(self, position: float) -> float:
        """Return the value at a position in [0, 1]."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            value = 10.0 ** (low + position * (high - low))
        else:
            value = self.low + position * (self.high - self.low)
        return min(max(float(value), self.low), self.high)

    def encode(self, value: Any) -> list[float]:
        """Return the position of a value in the range."""
        return [_position(float(value), self.low, self.high, self.log)]

    @property
    def width(self) -> int:
        """Length of an encoded value: 1."""
        return 1

    def contains(self, value: Any) -> bool:
        """Return whether a value is a number in the range."""
        return _is_number(value) and self.low <= value <= self.high

    def fields(self) -> dict[str, Any]:
        """Return the range as plain data, without its condition."""
        return {"float": [self.low, self.high]} | ({"log": True} if self.log else {})

    def _positional(self) -> Sequence[Any]:
        return self.low, self.high


class Integer(Range):
    """Integers from `low` to `high`, both included.

    Args:
        low: Smallest value.
        high: Largest value.
        log: Whether the logarithm is distributed uniformly. `low` must then be positive.
        step: Difference between two neighboring values. With `log` it must be 1.
        when: Values that other keys must have for the hyperparameter to be active.

    Example:
        >>> [Integer(8, 24, step=8).at(x) for x in (0.0, 0.5, 1.0)]
        [8, 16, 24]
    """

    name = "integer"

    def __init__(
        self,
        low: int,
        high: int,
        log: bool = False,
        step: int = 1,
        *,
        when: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(when)
        self.low = _integer("low", low)
        self.high = _integer("high", high)
        self.step = check_integer("Integer", "step", step, least=1)
        self.log = log
        if self.low >= self.high:
            raise TuningError(f"Integer: low ({low}) must be less than high ({high})")
        if log and self.step != 1:
            raise TuningError(f"Integer: a range with log=True must have step=1, not {step}")
        _check_log("Integer", self.low, log)
        self.high -= (self.high - self.low) % self.step
        if self.low == self.high:
            raise TuningError(
                f"Integer: step ({step}) is larger than the distance from {low} to {high}"
            )

    def at(self, position: float) -> int:
        """Return the value at a position in [0, 1]."""
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            value = round(math.exp(low + position * (high - low)))
        else:
            count = (self.high - self.low) // self.step + 1
            value = self.low + self.step * min(int(position * count), count - 1)
        return min(max(value, self.low), self.high)

    def encode(self, value: Any) -> list[float]:
        """Return the position of a value in the range."""
        return [_position(float(value), float(self.low), float(self.high), self.log)]

    @property
    def width(self) -> int:
        """Length of an encoded value: 1."""
        return 1

    def contains(self, value: Any) -> bool:
        """Return whether a value is an integer of the range."""
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return is_integer and self.low <= value <= self.high and not (value - self.low) % self.step

    def fields(self) -> dict[str, Any]:
        """Return the range as plain data, without its condition."""
        log: dict[str, Any] = {"log": True} if self.log else {}
        step: dict[str, Any] = {"step": self.step} if self.step != 1 else {}
        return {"integer": [self.low, self.high]} | log | step

    def _positional(self) -> Sequence[Any]:
        return self.low, self.high


class Choice(Range):
    """One of several values, which have no order.

    Args:
        values: The values: numbers, strings, booleans, None, or lists and dicts of them.
        when: Values that other keys must have for the hyperparameter to be active.

    Example:
        >>> Choice(["relu", "gelu"]).encode("gelu")
        [0.0, 1.0]
    """

    name = "choice"

    def __init__(self, values: Sequence[Any], *, when: Mapping[str, Any] | None = None) -> None:
        super().__init__(when)
        if isinstance(values, (str, Mapping)) or not isinstance(values, Sequence):
            raise TuningError(f"Choice: values must be a list, not {values!r:.60}")
        if not values:
            raise TuningError("Choice: values must not be empty")
        self.values = [_plain(value) for value in values]
        self._keys = [json.dumps(value, sort_keys=True) for value in self.values]
        if len(set(self._keys)) < len(self._keys):
            raise TuningError(f"Choice: the values must differ; got {self.values!r:.200}")

    def at(self, position: float) -> Any:
        """Return the value at a position in [0, 1]."""
        return self.values[min(int(position * len(self.values)), len(self.values) - 1)]

    def index(self, value: Any) -> int:
        """Return the index of a value."""
        return self._keys.index(json.dumps(value, sort_keys=True))

    def encode(self, value: Any) -> list[float]:
        """Return the one-hot encoding of a value."""
        index = self.index(value)
        return [1.0 if at == index else 0.0 for at in range(len(self.values))]

    @property
    def width(self) -> int:
        """Length of an encoded value: the number of values."""
        return len(self.values)

    def contains(self, value: Any) -> bool:
        """Return whether a value is one of the choices."""
        try:
            return json.dumps(value, sort_keys=True) in self._keys
        except (TypeError, ValueError):
            return False

    def fields(self) -> dict[str, Any]:
        """Return the range as plain data, without its condition."""
        return {"choice": self.values}

    def _positional(self) -> Sequence[Any]:
        return (self.values,)


def from_data(key: str, data: Any) -> Range:
    """Return the range that plain data describes.

    Args:
        key: Dotted key of the hyperparameter, for errors.
        data: A range, a list of choices, or a mapping with one of the keys "float", "integer" and
            "choice", and the other arguments of that range.
    """
    if isinstance(data, Range):
        return data
    if isinstance(data, (list, tuple)):
        data = {"choice": list(data)}
    kinds: dict[str, type[Range]] = {cls.name: cls for cls in (Float, Integer, Choice)}
    named = [name for name in kinds if isinstance(data, Mapping) and name in data]
    if len(named) != 1:
        raise TuningError(
            f"SearchSpace: {key}: must be a Float, an Integer, a Choice, a list of values or a "
            f"mapping with one of the keys {', '.join(kinds)}, not {data!r:.80}"
        )
    options = {str(name): value for name, value in data.items()}
    bounds = options.pop(named[0])
    arguments = [bounds] if named[0] == "choice" else bounds
    if not isinstance(arguments, list) or len(arguments) != (1 if named[0] == "choice" else 2):
        raise TuningError(f"SearchSpace: {key}: {named[0]} must be [low, high], not {bounds!r:.60}")
    try:
        return kinds[named[0]](*arguments, **options)
    except TypeError as error:
        raise TuningError(f"SearchSpace: {key}: {error}") from None
    except TuningError as error:
        raise TuningError(f"SearchSpace: {key}: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _integer(name: str, value: Any) -> int:
    number = check_integer("Integer", name, value, least=-(2**53))
    if number > 2**53:
        raise TuningError(f"Integer: {name} must be at most 2**53, not {value!r:.60}")
    return number


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can represent
        return False


def _number(where: str, name: str, value: Any) -> float:
    if not _is_number(value) or not _is_finite(value):
        raise TuningError(f"{where}: {name} must be a finite number, not {value!r:.60}")
    return float(value)


def _check_log(where: str, low: float, log: bool) -> None:
    if not isinstance(log, bool):
        raise TuningError(f"{where}: log must be True or False, not {log!r:.60}")
    if log and low <= 0:
        raise TuningError(f"{where}: low must be positive with log=True, not {low}")


def _position(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low)


def _plain(value: Any) -> Any:
    """Return a value as JSON stores it, so that it is equal after it was written and read."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise TuningError(
            f"Choice: a value must be a finite number, a string, None, or a list or dict of these, "
            f"not {value!r:.60}"
        ) from None
