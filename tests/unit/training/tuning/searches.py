"""Folders of searches with results made up for the tests of the report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ember_ml.configs.tune_run import TuneFields
from ember_ml.training.tuning.folder import TuningFolder

EVIL = "<script>document.title = 'broken'</script>"
SPACE: dict[str, Any] = {
    "trainer.learning_rate": {"float": [1e-4, 1e-1], "log": True},
    "model.num_layers": {"integer": [1, 4]},
    "model.activation": {"choice": ["relu", "gelu", EVIL]},
    "model.dropout": {"float": [0.0, 0.5], "when": {"model.activation": ["gelu"]}},
}
CONFIG = {
    "model": {"type": "mlp", "num_layers": 1, "activation": "relu", "dropout": 0.0},
    "trainer": {"learning_rate": 1e-3},
}


def write_search(path: Path, trials: int = 24, **fields: Any) -> Path:
    """Write the folder of a search in which the learning rate matters most."""
    options = {
        "space": SPACE,
        "metric": "val_accuracy",
        "mode": "max",
        "sampler": "random",
        "objectives": {"val_accuracy": "max", "parameters": "min"},
        **fields,
    }
    tune = TuneFields.from_dict(options).to_dict()
    about = {"config": CONFIG, "tune": tune, "backend": "numpy", "task": "made-up", "budget": 32}
    folder = TuningFolder(path)
    folder.open(about)
    tuner = folder.tuner(about)
    for at in range(trials):
        trial = tuner.ask()
        if at % 8 == 7:
            tuner.fail(trial, f"ValueError: {EVIL}")
            continue
        accuracy = 0.9 - 0.2 * (math.log10(trial["trainer.learning_rate"]) + 2.5) ** 2
        accuracy += 0.02 * trial["model.num_layers"]
        tuner.report(trial, 10, accuracy / 2)
        if at % 8 == 6:
            tuner.prune(trial)
            continue
        size = 1000.0 * trial["model.num_layers"]
        scores = {"val_accuracy": accuracy, "parameters": size}
        tuner.tell(trial, {name: scores[name] for name in tuner.objectives})
    return path
