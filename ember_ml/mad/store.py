"""Folder of a sweep: the runs that are done, and their results."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml._core import locks
from ember_ml._core.errors import EmberError
from ember_ml._core.files import read_regular, write_atomically
from ember_ml._core.folders import Folder, Kind, find_folder, holds, open_folder, write_folder
from ember_ml._core.version import VERSION
from ember_ml.configs.errors import ConfigError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result
from ember_ml.mad.scales import SCALES

FORMAT = 1
_RUN = Kind(
    "mad-run",
    "a run",
    frozenset(("config.json", "curve.csv", "examples.csv", "result.json")),
    lambda folder: True,  # only the store writes to the folders of its runs
)
EXAMPLE_COLUMNS = ("correct", "targets")
"""Fields of a result that have one value for each test example."""


class SweepError(EmberError, ValueError):
    """Raised for a folder that holds no sweep, another sweep, or damaged files."""


class Done(NamedTuple):
    """A run and its result."""

    run: RunConfig
    result: Result


class Failed(NamedTuple):
    """A run and the error it failed with."""

    run: RunConfig
    error: str


def run_name(run: RunConfig) -> str:
    """Return the name of a run's folder: task, architecture and a digest of the config.

    The digest does not include `run.code`.
    """
    fields = {name: value for name, value in run.to_dict().items() if name != "code"}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:10]
    words = re.sub(r"[^A-Za-z0-9]+", "-", run.architecture).strip("-")[:40]
    return f"{run.task.component.partition('/')[2]}.{words}.{digest}"


def setting_of(run: RunConfig) -> str:
    """Return the config of a run's task without the seed, as JSON."""
    sizes = {name: value for name, value in run.task.to_dict().items() if name != "seed"}
    return json.dumps(sizes, sort_keys=True)


def task_of(run: RunConfig) -> str:
    """Return the name of a run's task."""
    return run.task.component.partition("/")[2]


class Store:
    """Folder with `sweep.json`, and a folder for each run in `runs/`.

    Folders of runs are written atomically.

    Args:
        path: Path of the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def open(self, about: Mapping[str, object], plan: Mapping[str, object]) -> None:
        """Create the folder, or check that it holds a sweep of the same kind.

        Args:
            about: Values that all runs of the folder share: scale, settings and backend.
            plan: Architectures, tasks and seeds, added to the plans of the folder.
        """
        info = self.about() if (self.path / "sweep.json").exists() else None
        if info is None:
            self._check_is_empty()
            info = {"format": FORMAT, "ember_ml": VERSION, **about, "plans": []}
            self._write_info(info)
        self._check_is_same(about, info)
        plans = info.get("plans", [])
        if plan not in plans:
            self._write_info({**info, "plans": [*plans, plan]})

    def _check_is_same(self, about: Mapping[str, Any], info: Mapping[str, Any]) -> None:
        """Raise an error if the folder has another scale, backend or setting."""
        given, known = _flat(about), _flat({"settings": _settings(info), **info})
        for key, value in given.items():
            if known.get(key) != value:
                raise SweepError(
                    f"{self.path} belongs to another sweep: its {key} is {known.get(key)!r}, not "
                    f"{value!r}; use another folder, or the same {key}"
                )

    def _write_info(self, info: Mapping[str, object]) -> None:
        with self._explain_write_errors():
            write_atomically(self.path / "sweep.json", _to_json(info))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder, so that one process at a time does its runs."""
        with locks.locked(self.path / ".lock") as is_ours:
            if not is_ours:
                raise SweepError(
                    f"another process is working in {self.path}; wait for it, or use another folder"
                )
            yield

    def _check_is_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise SweepError(f"{self.path} is a file, not a folder")
        if self.path.exists() and any(self.path.glob("[!.]*")):
            raise SweepError(
                f"{self.path} contains files but is not a sweep (no sweep.json); use an empty or "
                "new folder"
            )

    def about(self) -> dict[str, Any]:
        """Return the content of `sweep.json`: format, version, scale, backend and plans."""
        info = _read(self.path / "sweep.json")
        if info is None:
            raise SweepError(f"{self.path} is not a sweep: it contains no sweep.json")
        if info.get("format") != FORMAT:
            raise SweepError(
                f"{self.path}: the sweep has the format {info.get('format')!r}; this version of "
                f"Ember ML reads {FORMAT}"
            )
        plans = info.get("plans", [])
        if not isinstance(plans, list) or not all(map(_is_plan, plans)):
            raise SweepError(
                f"{self.path / 'sweep.json'} is damaged: each of its plans must list architectures "
                "(name and layers), tasks and seeds"
            )
        if not _is_settings(info.get("settings", {})):
            raise SweepError(
                f"{self.path / 'sweep.json'} is damaged: its settings must be sizes and rates, not "
                f"{info['settings']!r:.200}"
            )
        return info

    def is_done(self, run: RunConfig) -> bool:
        """Return whether the folder has a result of a run, from the same plugin code."""
        folder = find_folder(self._folder(run))
        if not (folder / "result.json").exists():
            return False
        return not run.code or _read_required(folder / "config.json").get("code") == run.code

    def write(self, run: RunConfig, result: Result) -> None:
        """Write config, curve and result of a run as one atomic folder."""
        fields = result._asdict()
        curve = fields.pop("curve")
        examples = list(zip(*(fields.pop(name) for name in EXAMPLE_COLUMNS), strict=True))
        contents = {
            "config.json": _to_json(run.to_dict()),
            "curve.csv": _to_csv(Point._fields, curve),
            "examples.csv": _to_csv(EXAMPLE_COLUMNS, examples),
            "result.json": _to_json(fields),
        }
        with self._explain_write_errors():
            write_folder(self._folder(run), contents, _RUN)
        self._failure(run).unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints / run_name(run), ignore_errors=True)
        with contextlib.suppress(OSError):  # other runs have checkpoints
            self.checkpoints.rmdir()

    def has_checkpoint(self, run: RunConfig) -> bool:
        """Return whether a run was interrupted and can continue from its checkpoint."""
        return holds(self.checkpoints / run_name(run), "training.json")

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints of unfinished runs."""
        return self.path / "checkpoints"

    def write_failure(self, run: RunConfig, error: str) -> None:
        """Write the error of a failed run, which still counts as not done."""
        with self._explain_write_errors():
            write_atomically(
                self._failure(run), _to_json({"config": run.to_dict(), "error": error})
            )

    @contextlib.contextmanager
    def _explain_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text = f"{error.strerror} (completed runs are safe; run the same command to continue)"
            raise OSError(error.errno, text, str(self.path)) from error

    def done(self) -> list[Done]:
        """Return the runs that are done."""
        runs = []
        for path in sorted((self.path / "runs").glob("[!.]*")):
            with open_folder(path) as folder:
                if folder.file("result.json").exists():
                    with _explain_read_errors(path):
                        runs.append(_read_done(folder))
        return runs

    def failed(self) -> list[Failed]:
        """Return the runs that failed and have no result since."""
        runs = []
        for path in sorted((self.path / "failed").glob("[!.]*.json")):
            with _explain_read_errors(path):
                fields = _read_required(path)
                config = RunConfig.from_dict(fields["config"])
                runs.append(Failed(config, _checked(fields["error"], str, "error")))
        return runs

    def _folder(self, run: RunConfig) -> Path:
        return self.path / "runs" / run_name(run)

    def _failure(self, run: RunConfig) -> Path:
        return self.path / "failed" / f"{run_name(run)}.json"


@contextlib.contextmanager
def _explain_read_errors(path: Path) -> Iterator[None]:
    """Raise a `SweepError` that names the path if its content is not as written."""
    try:
        yield
    except SweepError as error:
        raise SweepError(f"{error}; remove {path} to repeat the run") from None
    except ConfigError as error:
        raise SweepError(
            f"{path} cannot be read: {error}; if a plugin registers the component, name the plugin "
            "(--plugin, EMBER_ML_PLUGINS); if the file is damaged, remove it to repeat the run"
        ) from None
    except (KeyError, TypeError, ValueError, OSError, OverflowError, RecursionError) as error:
        raise SweepError(f"{path} is damaged ({error}); remove it to repeat the run") from None


def _flat(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a sweep merged with its settings."""
    settings = about.get("settings") or {}
    return {key: value for key, value in about.items() if key != "settings"} | settings


def _settings(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a sweep written before they were stored: those of its scale."""
    scale = SCALES.get(str(info.get("scale")))
    return {} if scale is None else scale.settings()


def _to_json(data: object) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


def _read(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a JSON file; None if there is no such file."""
    try:
        return _mapping(read_regular(path), path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SweepError(f"{path} cannot be read: {error}") from None


def _mapping(content: bytes, path: Path) -> dict[str, Any]:
    """Return the mapping in the content of a JSON file."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SweepError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise SweepError(f"{path} must contain a JSON object")
    return data


def _read_required(path: Path) -> dict[str, Any]:
    data = _read(path)
    if data is None:
        raise SweepError(f"{path} is missing")
    return data


def _to_csv(columns: Sequence[str], rows: Iterable[Sequence[float]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def _read_done(folder: Folder) -> Done:
    """Return a run and its result, after comparing the files with their checksums."""
    config = RunConfig.from_dict(_mapping(folder.read("config.json"), folder.path / "config.json"))
    fields = _mapping(folder.read("result.json"), folder.path / "result.json")
    for name, value in fields.items():
        _checked(value, int if name in _INTEGERS else (int, float), name)
        if name.endswith("accuracy") and not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}")
    curve = tuple(
        Point(int(row.pop("step")), **{name: float(value) for name, value in row.items()})
        for row in _rows(folder.read("curve.csv"))
    )
    return Done(config, Result(**fields, curve=curve)._replace(**_read_examples(folder)))


_INTEGERS = ("steps", "parameters", "state", "state_per_token")


def _is_plan(plan: object) -> bool:
    """Return whether data of `sweep.json` describes architectures, tasks and seeds."""
    if not isinstance(plan, dict):
        return False
    names, tasks, seeds = (plan.get(key) for key in ("architectures", "tasks", "seeds"))
    return (
        isinstance(names, list)
        and all(isinstance(each, list) and len(each) == 2 for each in names)
        and all(isinstance(part, str) for each in names for part in each)
        and isinstance(tasks, list)
        and all(isinstance(task, str) for task in tasks)
        and isinstance(seeds, list)
        and all(type(seed) is int for seed in seeds)
    )


def _is_settings(settings: object) -> bool:
    """Return whether data of `sweep.json` has the types of `Scale.settings`; {} for none."""
    if not isinstance(settings, dict):
        return False
    return not settings or (
        settings.keys() == SCALES["mini"].settings().keys()
        and all(_is_setting(name, value) for name, value in settings.items())
    )


def _is_setting(name: str, value: object) -> bool:
    if name in ("learning_rates", "weight_decays"):
        lowest = 0.0 if name == "weight_decays" else sys.float_info.min
        rates = value if isinstance(value, list) else []
        return bool(rates) and all(type(x) in (int, float) and lowest <= x < 1e6 for x in rates)
    if name == "harder":
        return isinstance(value, bool)
    if name == "based_on":
        return isinstance(value, str)
    return (name == "steps" and value is None) or (type(value) is int and value > 0)


def _checked(value: Any, kinds: type | tuple[type, ...], name: str) -> Any:
    """Return a value of a JSON file if it has the right type."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"{name} has the value {value!r:.60}")
    return value


def _read_examples(folder: Folder) -> dict[str, Any]:
    """Return the counts by example; empty for results written before they were stored."""
    exists = folder.file("examples.csv").exists()
    rows = _rows(folder.read("examples.csv")) if exists else []
    counts = {name: tuple(int(row[name]) for row in rows) for name in EXAMPLE_COLUMNS}
    for correct, targets in zip(counts["correct"], counts["targets"], strict=True):
        if not 0 <= correct <= targets:
            raise ValueError(f"{correct} of {targets} targets are correct")
    return counts


def _rows(content: bytes) -> list[dict[str, str]]:
    try:
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    except csv.Error as error:
        raise ValueError(str(error)) from None
