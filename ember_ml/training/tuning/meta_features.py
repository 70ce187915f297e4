"""Meta-features: numbers that describe a task, for learning from other tasks."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.backend import use_backend
from ember_ml.nn.module import Module
from ember_ml.training.trainer import sources
from ember_ml.training.trainer.sources import DataLike

NAMES = (
    "log_examples",
    "log_features",
    "log_classes",
    "class_entropy",
    "effective_rank",
    "log_parameters",
)
MAX_EXAMPLES = 2048
"""Number of examples from which rank and entropy are computed."""
_BATCH = 256


def meta_features(dataset: DataLike, model: Module | None = None) -> dict[str, float]:
    """Return numbers that describe a dataset and a model.

    The keys are `log_examples`, `log_features` and `log_classes` (decadic logarithms),
    `class_entropy` and `effective_rank` (both relative to their maximum, so in [0, 1]), and
    `log_parameters`. Values that a task does not have are 0: `log_classes` and `class_entropy` of
    targets that are real numbers, `effective_rank` of tokens. They depend only on the data and the
    model's size, not on the backend or a seed, up to rounding.

    Args:
        dataset: Training data as in `Trainer.fit`: arrays (inputs, targets), a dataset or a loader.
        model: The model.

    Example:
        >>> inputs, targets = ops.ones((8, 3)), ops.asarray([0, 1] * 4)
        >>> meta_features((inputs, targets))["class_entropy"]
        1.0
    """
    with use_backend("numpy"):  # the same numbers wherever the model is
        inputs, targets, count = _sample(dataset)
        features = math.prod(inputs.shape[1:])
        values = {
            "log_examples": math.log10(max(1, count)),
            "log_features": math.log10(max(1, features)),
            **_classes(targets),
            "effective_rank": _effective_rank(inputs),
            "log_parameters": 0.0 if model is None else math.log10(1 + model.num_parameters()),
        }
    return {name: round(values[name], 6) for name in NAMES}


def _sample(dataset: DataLike) -> tuple[Tensor, Tensor | None, int]:
    """Return the first inputs and targets, and the number of examples."""
    loader = sources.loader(dataset, _BATCH, shuffle=False, seed=0)
    position = loader.state_dict()
    inputs: list[Tensor] = []
    targets: list[Tensor] = []
    count = 0
    for batch in loader.batches(None):
        parts = _parts(batch)
        count += len(parts[0])
        if sum(map(len, inputs)) < MAX_EXAMPLES:
            inputs.append(parts[0])
            targets += parts[1:2]
    loader.load_state_dict(position)
    return ops.concatenate(inputs), ops.concatenate(targets) if targets else None, count


def _parts(batch: Any) -> list[Tensor]:
    """Return inputs and targets of a batch as tensors on the host."""
    if isinstance(batch, dict):
        batch = [batch["inputs"], *([batch["targets"]] if "targets" in batch else [])]
    values = list(batch) if isinstance(batch, (list, tuple)) else [batch]
    return [convert_to_tensor(_first(value)).to_backend("numpy") for value in values[:2]]


def _first(value: Any) -> Any:
    """Return the first array of nested ones."""
    while isinstance(value, (dict, list, tuple)) and value:
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    return value


def _classes(targets: Tensor | None) -> dict[str, float]:
    """Return the number of classes, and their entropy relative to equal frequencies."""
    if targets is None or not targets.dtype.is_integer:
        return {"log_classes": 0.0, "class_entropy": 0.0}
    counts = Counter(label for label in ops.reshape(targets, (-1,)).tolist() if label >= 0)
    total = sum(counts.values())
    shares = [each / total for _, each in sorted(counts.items())]
    entropy = -sum(share * math.log(share) for share in shares)
    relative = entropy / math.log(len(shares)) if len(shares) > 1 else 0.0
    return {"log_classes": math.log10(max(1, len(shares))), "class_entropy": relative}


def _effective_rank(inputs: Tensor) -> float:
    """Return the effective rank of the standardized inputs, relative to its maximum.

    The effective rank is exp(entropy of the squared singular values).
    """
    if not inputs.dtype.is_floating or len(inputs) < 2:
        return 0.0
    rows = ops.cast(ops.reshape(inputs, (len(inputs), -1)), "float64")
    scale = ops.std(rows, axis=0)
    rows = (rows - ops.mean(rows, axis=0)) / ops.where(scale > 0, scale, 1.0)
    singular = ops.linearalg.svdvals(rows).tolist()
    total = sum(value**2 for value in singular)
    if not total or not math.isfinite(total):
        return 0.0
    shares = [value**2 / total for value in singular if value > 0]
    entropy = -sum(share * math.log(share) for share in shares if share > 0)
    return math.exp(entropy) / min(rows.shape)
