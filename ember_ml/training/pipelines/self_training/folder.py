"""The folder of a self-training run.

`config.json`, `model.safetensors`: the inference pipeline, written last. `preprocess/`: what was
fitted. `initial/`: the model before training. `round-00/` and following: pseudo-labels and trainer
checkpoint of each round. `history.json`: records of the finished rounds. `run.json`: what a resumed
run must have in common. `results.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import write_atomically
from ember_ml._core.folders import remove_folder
from ember_ml.nn import checkpoint
from ember_ml.nn.checkpoint import KIND
from ember_ml.nn.module import Module
from ember_ml.training.pipelines.run_folder import LAST, PREPROCESS, RESULTS, RunFolder
from ember_ml.training.pipelines.self_training.history import not_own, read_json

INITIAL, HISTORY, RUN, PSEUDO_LABELS = (
    "initial",
    "history.json",
    "run.json",
    "pseudo_labels.safetensors",
)


class SelfTrainingFolder(RunFolder):
    """Folder of a self-training run.

    Args:
        path: The folder.
    """

    owner: ClassVar[str] = "SelfTrainingPipeline"

    def exists(self) -> bool:
        """Return whether the folder has a run; `run.json` is the first file that a run writes."""
        return (self.path / RUN).exists() or self._has(".")

    def remove(self) -> None:
        """Remove the run: its result first and `run.json` last.

        If this is interrupted, only a run with the same options can resume, from its first round.
        Without a `run.json` that a run wrote, nothing is removed.
        """
        if self._saved_run() is None:
            return
        remove_folder(self.path, KIND)
        for name in (RESULTS, HISTORY):
            (self.path / name).unlink(missing_ok=True)
        for place in sorted(self.path.glob("round-[0-9]*")):
            remove_folder(place / LAST, KIND)
            (place / PSEUDO_LABELS).unlink(missing_ok=True)
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
        for name in (INITIAL, PREPROCESS):
            remove_folder(self.path / name, KIND)
        (self.path / RUN).unlink(missing_ok=True)

    @property
    def history(self) -> Path:
        """File with the records of the finished rounds."""
        return self.path / HISTORY

    def round(self, number: int) -> Path:
        """Return the folder of a round.

        Args:
            number: Number of the round.
        """
        return self.path / f"round-{number:02d}"

    def pseudo_labels(self, number: int) -> Path:
        """Return the file with the pseudo-labels of a round.

        Args:
            number: Number of the round.
        """
        return self.round(number) / PSEUDO_LABELS

    def checkpoint(self, number: int) -> Path | None:
        """Return the newest checkpoint of a round, if there is one.

        Args:
            number: Number of the round.
        """
        name = f"round-{number:02d}/{LAST}"
        return self.path / name if self._has(name) else None

    def keep_initial(self, model: Module) -> None:
        """Save the weights before training, or load those that the interrupted run had.

        Args:
            model: The model.
        """
        if self._has(INITIAL):
            self.load_initial(model)
        else:
            checkpoint.save(model, self.path / INITIAL)

    def load_initial(self, model: Module) -> None:
        """Load the weights before training.

        Args:
            model: The model.
        """
        checkpoint.load(self.path / INITIAL, into=model)

    def check_run(self, run: dict[str, Any]) -> None:
        """Write what identifies the run; raise an error if the folder has another run.

        Args:
            run: Options and sizes of the data, as plain data.
        """
        saved = self._saved_run()
        if saved is None:
            write_atomically(self.path / RUN, f"{json.dumps(run, indent=2)}\n".encode())
            return
        differences = [
            f"{key} is {saved.get(key)!r:.80}, not {run.get(key)!r:.80}"
            for key in {**saved, **run}
            if saved.get(key) != run.get(key)
        ]
        if differences:
            raise ArgumentError(
                f"SelfTrainingPipeline.fit: {self.path} has another run: {'; '.join(differences)}; "
                "resume with the same, replace the run (overwrite=True), or choose another folder"
            )

    def _saved_run(self) -> dict[str, Any] | None:
        """Return the content of `run.json`; None if there is no such file."""
        path = self.path / RUN
        if not path.exists():
            return None
        saved = read_json(path)
        if not (isinstance(saved, dict) and "sizes" in saved):
            raise not_own(path)
        return saved
