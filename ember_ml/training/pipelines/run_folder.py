"""The folder of a training pipeline.

`config.json`, `model.safetensors`: the inference pipeline, written last. `preprocess/`: what was
fitted. `last/` and `best/`: checkpoints of the trainer. `log.csv`, `results.json`.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, ClassVar

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import write_atomically
from ember_ml._core.folders import holds, remove_folder
from ember_ml.nn import checkpoint
from ember_ml.nn.checkpoint import KIND, CheckpointError
from ember_ml.nn.module import Module

PREPROCESS, LAST, BEST, LOG, RESULTS = "preprocess", "last", "best", "log.csv", "results.json"


class RunFolder:
    """Folder of a training run.

    Args:
        path: The folder.

    Attributes:
        owner: Name of the pipeline in errors.
    """

    owner: ClassVar[str] = "TrainingPipeline"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def begin(self, *, resume: bool, overwrite: bool) -> bool:
        """Return whether there is a run to resume; refuse or remove a run that is not resumed.

        Args:
            resume: Whether to continue the run in the folder, if there is one.
            overwrite: Whether to remove it.
        """
        if resume and overwrite:
            raise ArgumentError(f"{self.owner}.fit: pass resume=True or overwrite=True, not both")
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{self.owner}.fit: {self.path} is a file; choose a folder")
        exists = self.exists()
        if exists and not (resume or overwrite):
            raise ArgumentError(
                f"{self.owner}.fit: {self.path} already contains a training run; continue it "
                "(resume=True), replace it (overwrite=True), or choose another folder"
            )
        if overwrite:
            self.remove()
        return exists and resume

    def exists(self) -> bool:
        """Return whether the folder has a run, complete or not."""
        return any(self._has(name) for name in (".", PREPROCESS, LAST))

    def remove(self) -> None:
        """Remove the run: first its result, so that an interruption leaves no mixture."""
        for name in (".", LAST, BEST, PREPROCESS):
            remove_folder(self.path / name, KIND)
        for name in (LOG, RESULTS):
            (self.path / name).unlink(missing_ok=True)

    def _has(self, name: str) -> bool:
        return holds(self.path / name, "config.json")

    def check(self, model: Module) -> None:
        """Raise an error if a model cannot be saved here and be loaded by its config.

        Args:
            model: The model.
        """
        checkpoint.check_target(model, self.path)
        if checkpoint.config_dict(model) is not None:
            return
        unregistered = next((part for part in model.modules() if part.config is None), None)
        if unregistered is not None:
            raise CheckpointError(
                f"{self.owner}: the folder could not be loaded, because "
                f"{type(unregistered).__name__} is not registered; register the class: "
                '@register("layers/...")'
            )

    def save_preprocess(self, fitted: Module) -> None:
        """Save what was fitted to the training data.

        Args:
            fitted: Module with the fitted parts.
        """
        checkpoint.save(fitted, self.path / PREPROCESS)

    def load_preprocess(self) -> Module | None:
        """Return what the interrupted run had fitted; None if it was interrupted before."""
        return checkpoint.load(self.path / PREPROCESS) if self._has(PREPROCESS) else None

    def last(self) -> Path | None:
        """Return the newest checkpoint of the trainer, if there is one."""
        return self.path / LAST if self._has(LAST) else None

    def best(self) -> Path | None:
        """Return the best checkpoint of the trainer, if there is one."""
        return self.path / BEST if self._has(BEST) else None

    def write_results(self, results: dict[str, Any]) -> None:
        """Write results.json.

        Args:
            results: Plain data; NaN and infinite values become null.
        """
        text = json.dumps(_finite(results), indent=2, allow_nan=False)
        write_atomically(self.path / RESULTS, (text + "\n").encode())


def config_conflict(requested: object, fitted: object) -> str | None:
    """Return how a fitted preprocessing differs from the requested one; None if it does not.

    Fields that are None in the requested config are left to the fit.

    Args:
        requested: Preprocessing of the run that resumes. None: there is none.
        fitted: Preprocessing in the folder.
    """
    configs = [
        plain_config(part) if isinstance(part, Module) else None for part in (requested, fitted)
    ]
    if (requested is None) != (fitted is None):
        return "none" if fitted is None else f"{type(fitted).__name__} instead of none"
    return None if configs[0] is None else _conflict("preprocess", *configs)


def plain_config(module: Module) -> Any:
    """Return the config of a module as plain data; None if it has none."""
    return json.loads(json.dumps(checkpoint.config_dict(module), default=str))


def _conflict(name: str, requested: Any, fitted: Any) -> str | None:
    if requested is None or requested == fitted:
        return None
    if not (isinstance(requested, dict) and isinstance(fitted, dict)) or (
        (requested.get("type"), *requested) != (fitted.get("type"), *fitted)
    ):
        return f"{name} is {fitted!r:.80}, not {requested!r:.80}"
    parts = ((key, value, fitted[key]) for key, value in requested.items())
    conflicts = (_conflict(f"{name}.{key}", new, old) for key, new, old in parts)
    return next((conflict for conflict in conflicts if conflict is not None), None)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
