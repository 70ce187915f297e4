"""Checks of `training.json`, the plain data of a checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ember_ml.nn.checkpoint import CheckpointError
from ember_ml.nn.state_dict import StateDictError


def check(where: str, data: Mapping[str, Any]) -> None:
    """Raise a CheckpointError that names the file and the key if `save` did not write the data.

    Args:
        where: Path of the file.
        data: Its content.
    """
    fields = _Fields(where, data)
    for name in ("step", "epoch"):
        fields.count(name)
    optimizer = _Fields(f"{where}: optimizer", fields.get("optimizer", dict))
    optimizer.get("type", str)
    optimizer.count("step")
    if "extra" in data["optimizer"]:
        optimizer.get("extra", dict)
    for group in optimizer.get("groups", list):
        _Fields(f"{where}: optimizer: groups", group).names("params")
    if (schedule := fields.get("schedule", dict, None)) is not None:
        _Fields(f"{where}: schedule", schedule).get("class", str)
        _Fields(f"{where}: schedule", schedule).get("state", dict)
    if (loader := fields.get("loader", dict, None)) is not None:
        for name in ("epoch", "batches"):
            _Fields(f"{where}: loader", loader).count(name)
    if (scale := fields.get("scale", dict, None)) is not None:
        _Fields(f"{where}: scale", scale).get("value", float, int)
        _Fields(f"{where}: scale", scale).count("good")
    if "evaluation" in data:
        fields.get("evaluation", bool)
    if "metrics" in data and (metrics := fields.get("metrics", dict, None)) is not None:
        for name in ("step", "epoch"):
            _Fields(f"{where}: metrics", metrics).get(name, list)
    if "skipped" in data:
        fields.count("skipped")
    if "start" in data:
        start = fields.get("start", list)
        if len(start) != 2 or not all(type(each) is int and each >= 0 for each in start):
            raise CheckpointError(f"{where}: 'start' must be two counts, not {start!r:.60}")
    if "group" in data:
        group = _Fields(f"{where}: group", fields.get("group", dict))
        group.count("count")
        group.count("used")
        group.get("loss", float, int)
        group.get("weight", float, int)
    if "ema" in data:
        _Fields(f"{where}: ema", fields.get("ema", dict)).count("updates")
    for callback in fields.get("callbacks", list):
        if not (isinstance(callback, list) and list(map(type, callback)) == [str, dict]):
            raise CheckpointError(f"{where}: callbacks must be a list of [class name, state]")
    fields.get("random", dict)
    _check_history(f"{where}: history", fields.get("history", dict))


def _check_history(where: str, data: Mapping[str, Any]) -> None:
    fields = _Fields(where, data)
    if "size" in data:
        for name in ("size", "crc32", "steps", "epochs"):
            fields.count(name)
        fields.records("newest_steps", ("step", "epoch", "loss"))
        fields.records("newest_epochs", ("step", "epoch"))
    else:
        fields.records("steps", ("step", "epoch", "loss"))
        fields.records("epochs", ("step", "epoch"))


class _Fields:
    """Mapping whose values are checked when they are read."""

    def __init__(self, where: str, data: object) -> None:
        if not isinstance(data, dict):
            raise CheckpointError(f"{where} must be a JSON object, not {data!r:.60}")
        self._where, self._data = where, data

    def get(self, name: str, *kinds: type | None) -> Any:
        """Return a value of one of the types; None stands for null."""
        if name not in self._data:
            raise CheckpointError(f"{self._where}: the key {name!r} is missing")
        value = self._data[name]
        kind = None if value is None else type(value)
        if kind not in kinds:
            expected = " or ".join("null" if k is None else k.__name__ for k in kinds)
            raise CheckpointError(
                f"{self._where}: {name!r} must be of type {expected}, not {value!r:.60}"
            )
        return value

    def count(self, name: str) -> int:
        """Return an integer that is not negative."""
        value: int = self.get(name, int)
        if value < 0:
            raise CheckpointError(f"{self._where}: {name!r} must not be negative; got {value}")
        return value

    def names(self, name: str) -> None:
        """Check a list of strings."""
        if not all(isinstance(each, str) for each in self.get(name, list)):
            raise CheckpointError(f"{self._where}: {name!r} must be a list of strings")

    def records(self, name: str, keys: tuple[str, ...]) -> None:
        """Check a list of records with numbers under some keys."""
        for record in self.get(name, list):
            fields = _Fields(f"{self._where}: {name}", record)
            for key in keys:
                fields.get(key, float, int)


def check_types(where: str, own: object, saved: object) -> None:
    """Raise a CheckpointError if the types of saved values differ from those of an object.

    Args:
        where: What the values belong to, for the error message.
        own: Current state of the object.
        saved: State to load. Keys that only one of the two has are not compared.
    """
    if own is None or saved is None:
        return
    if isinstance(own, Mapping) and isinstance(saved, Mapping):
        for name in own.keys() & saved.keys():
            check_types(f"{where}: {name}", own[name], saved[name])
    elif isinstance(own, (list, tuple)) and isinstance(saved, list):
        if own and saved:
            for each in saved:
                check_types(where, own[0], each)
    elif _kind(own) is not _kind(saved):
        raise CheckpointError(f"{where}: expected a value like {own!r:.40}, not {saved!r:.40}")


def _kind(value: object) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


@contextlib.contextmanager
def checkpoint_errors(where: str) -> Iterator[None]:
    """Turn the errors that damaged plain data causes into a CheckpointError.

    Args:
        where: What the data belongs to.
    """
    try:
        yield
    except (CheckpointError, StateDictError):
        raise
    except KeyError as error:
        raise CheckpointError(f"{where}: the key {error} is missing") from None
    except (TypeError, ValueError, OverflowError, AttributeError, RuntimeError) as error:
        raise CheckpointError(f"{where} is damaged: {error}") from None
