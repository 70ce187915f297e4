"""The folder of a sweep: which runs are done, and what came out of them."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml._core import locks
from ember_ml._core.errors import EmberError
from ember_ml._core.files import write_atomically
from ember_ml._core.folders import write_folder
from ember_ml._core.version import VERSION
from ember_ml.configs.errors import ConfigError
from ember_ml.configs.mad import RunConfig
from ember_ml.mad.run import Point, Result

FORMAT = 1


class SweepError(EmberError, ValueError):
    """A folder that holds no sweep, or another one."""


class Done(NamedTuple):
    """A run and its result."""

    run: RunConfig
    result: Result


class Failed(NamedTuple):
    """A run that ended in an error."""

    run: RunConfig
    error: str


def run_name(run: RunConfig) -> str:
    """The name of a run's folder: what it is, and a digest of all of it but the code."""
    plain = {name: value for name, value in run.to_dict().items() if name != "code"}
    text = json.dumps(plain, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    words = re.sub(r"[^A-Za-z0-9]+", "-", run.architecture).strip("-")[:40]
    return f"{run.task.component.partition('/')[2]}.{words}.{digest}"


class Store:
    """A folder with `sweep.json`, and a folder for each run in `runs/`.

    Folders of runs appear whole or not at all.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def open(self, about: dict[str, Any], plan: dict[str, Any]) -> None:
        """Begin a sweep, or go on with the one that is here if it is the same kind.

        Args:
            about: what must not change from one start to the next: the scale and the backend.
            plan: what is to be done, which is kept beside what was planned before.
        """
        there = self.about() if (self.path / "sweep.json").exists() else None
        if there is None:
            self._refuse_foreign()
            there = {"format": FORMAT, "ember_ml": VERSION, **about, "plans": []}
            self._say(there)
        for key, value in about.items():
            if there.get(key) != value:
                raise SweepError(
                    f"{self.path} belongs to another sweep: its {key} is {there.get(key)!r}, not "
                    f"{value!r}; take another folder, or the same {key}"
                )
        plans = there.get("plans", [])
        if plan not in plans:
            self._say({**there, "plans": [*plans, plan]})

    def _say(self, about: dict[str, Any]) -> None:
        with self._kept():
            write_atomically(self.path / "sweep.json", _json(about))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Within the block no other process does the runs of this folder."""
        with locks.locked(self.path / ".lock") as is_ours:
            if not is_ours:
                raise SweepError(
                    f"another process is at work in {self.path}; wait for it, or take another"
                    " folder"
                )
            yield

    def _refuse_foreign(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise SweepError(f"{self.path} is a file, not a folder")
        if self.path.exists() and any(self.path.glob("[!.]*")):
            raise SweepError(
                f"{self.path} has files in it and is no sweep (it has no sweep.json); take an "
                "empty or new folder"
            )

    def about(self) -> dict[str, Any]:
        """What was said when the sweep began."""
        data = _read(self.path / "sweep.json")
        if data is None:
            raise SweepError(f"{self.path} holds no sweep: there is no sweep.json in it")
        if data.get("format") != FORMAT:
            raise SweepError(
                f"{self.path}: the sweep has the format {data.get('format')!r}; this version of "
                f"Ember ML reads {FORMAT}"
            )
        return data

    def is_done(self, run: RunConfig) -> bool:
        """Whether its result is here, and of the same code."""
        folder = self._folder(run)
        if not (folder / "result.json").exists():
            return False
        return not run.code or _need(folder / "config.json").get("code") == run.code

    def write(self, run: RunConfig, result: Result) -> None:
        """Keep a result: configuration, curve and result, all of them or nothing."""
        plain = result._asdict()
        curve = plain.pop("curve")
        with self._kept():
            self._write(run, curve, plain)
        (self.path / "failed" / f"{run_name(run)}.json").unlink(missing_ok=True)

    def _write(self, run: RunConfig, curve: tuple[Point, ...], plain: dict[str, Any]) -> None:
        write_folder(
            self._folder(run),
            {
                "config.json": _json(run.to_dict()),
                "curve.csv": _csv(curve),
                "result.json": _json(plain),
            },
        )

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """Within the block an error of the disk says what becomes of the sweep."""
        try:
            yield
        except OSError as error:
            text = f"{error.strerror} (what was done before is kept, and the same command goes on)"
            raise OSError(error.errno, text, str(self.path)) from error

    def write_failure(self, run: RunConfig, error: str) -> None:
        """Keep what went wrong; the run counts as not done."""
        target = self.path / "failed" / f"{run_name(run)}.json"
        with self._kept():
            write_atomically(target, _json({"config": run.to_dict(), "error": error}))

    def done(self) -> list[Done]:
        """Every run that is done."""
        found = []
        for folder in sorted((self.path / "runs").glob("[!.]*")):
            if (folder / "result.json").exists():
                with _explained(folder):
                    config = RunConfig.from_dict(_need(folder / "config.json"))
                    plain = _need(folder / "result.json")
                    found.append(Done(config, Result(**plain, curve=_curve(folder / "curve.csv"))))
        return found

    def failed(self) -> list[Failed]:
        """Every run that ended in an error, and was not done since."""
        found = []
        for path in sorted((self.path / "failed").glob("[!.]*.json")):
            with _explained(path):
                plain = _need(path)
                found.append(Failed(RunConfig.from_dict(plain["config"]), plain["error"]))
        return found

    def _folder(self, run: RunConfig) -> Path:
        return self.path / "runs" / run_name(run)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Within the block, content that is not what was written is an error that names its place."""
    try:
        yield
    except SweepError as error:
        raise SweepError(f"{error}; remove {path}, and it is done again") from None
    except ConfigError as error:
        raise SweepError(
            f"{path} is not understood: {error}; if a plugin registers it, name the plugin "
            "(--plugin, EMBER_ML_PLUGINS); if it is damaged, remove it, and it is done again"
        ) from None
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise SweepError(f"{path} is damaged ({error}); remove it, and it is done again") from None


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SweepError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise SweepError(f"{path} holds no keys and values")
    return data


def _need(path: Path) -> dict[str, Any]:
    data = _read(path)
    if data is None:
        raise SweepError(f"{path} is missing")
    return data


def _csv(curve: tuple[Point, ...]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Point._fields)
    writer.writerows(curve)
    return text.getvalue().encode()


def _curve(path: Path) -> tuple[Point, ...]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Point(int(row.pop("step")), **{name: float(value) for name, value in row.items()})
        for row in rows
    )
