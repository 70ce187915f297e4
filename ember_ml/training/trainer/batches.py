"""What a trainer takes for data."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.data import ArrayDataset, DataLoader, Dataset, IterableDataset
from ember_ml.nn.module import Module
from ember_ml.registry.base import close_matches


def loader(data: Any, batch_size: int, *, shuffle: bool, seed: int) -> DataLoader:
    """A loader for a loader, a dataset, or arrays."""
    if isinstance(data, DataLoader):
        return data
    if isinstance(data, IterableDataset):
        return DataLoader(data, batch_size)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle=shuffle, seed=seed)
    if isinstance(data, (tuple, list)):
        return DataLoader(ArrayDataset(*data), batch_size, shuffle=shuffle, seed=seed)
    if isinstance(data, Mapping):
        return DataLoader(ArrayDataset(data), batch_size, shuffle=shuffle, seed=seed)
    raise ArgumentTypeError(
        "data is a DataLoader, a dataset, a tuple of arrays (inputs, targets) or a dict of "
        f"arrays, not {type(data).__name__}"
    )


def inputs_loader(data: Any, batch_size: int) -> DataLoader:
    """A loader for data whose targets, if it has any, are of no interest."""
    known = isinstance(data, (DataLoader, Dataset, IterableDataset, Mapping, tuple, list))
    return loader(data if known else (data,), batch_size, shuffle=False, seed=0)


class Parts(NamedTuple):
    """What a batch consists of."""

    inputs: tuple[Any, ...]
    named: dict[str, Any]
    """Further arguments of the model, by name."""
    targets: Any
    options: dict[str, Any]
    """Of the loss."""


KEYS = ("inputs", "targets", "mask")
"""Of a batch that is a dict; others are names of the model's arguments."""


def split(batch: Any, with_targets: bool) -> Parts:
    """What is what in a batch.

    A tuple is (inputs, targets) or (inputs, targets, mask), a dict has these keys. Inputs that are
    a tuple are several arguments of the model.
    """
    if not with_targets:
        return Parts(tuple(batch) if isinstance(batch, (tuple, list)) else (batch,), {}, None, {})
    if isinstance(batch, Mapping):
        missing = [key for key in ("inputs", "targets") if key not in batch]
        if missing:
            raise ArgumentError(
                "a batch that is a dict has 'inputs', 'targets' and maybe 'mask', and arguments of "
                f"the model by name; {sorted(batch)} has no {' and no '.join(missing)}; for other "
                "batches override Trainer.compute"
            )
        parts = [batch["inputs"], batch["targets"], batch.get("mask")]
    elif isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        parts = [*batch, None][:3]
    else:
        raise ArgumentError(
            "a batch is (inputs, targets), (inputs, targets, mask) or a dict with these keys; "
            "for other batches override Trainer.compute"
        )
    inputs, targets, mask = parts
    options = {} if mask is None else {"sample_weight": mask}
    return Parts(_arguments(inputs), _named(batch), targets, options)


def weight_of(batch: Any, mask: Tensor | None) -> float:
    """What a batch counts in a mean over batches: the sum of its mask, or its examples."""
    if mask is not None:
        return float(ops.sum(ops.astype(mask, "float32")))
    first = next((x for x in tree.leaves_of(batch) if isinstance(x, EmberTensor)), None)
    return float(first.shape[0]) if first is not None and first.ndim else 1.0


def inputs_of(batch: Any) -> Parts:
    """The model's arguments in a batch that may have targets, too."""
    if isinstance(batch, Mapping) and "inputs" in batch:
        return Parts(_arguments(batch["inputs"]), _named(batch), None, {})
    first = batch[0] if isinstance(batch, (tuple, list)) else batch
    return Parts(_arguments(first), {}, None, {})


def apply(model: Module, parts: Parts) -> Any:
    """The model's outputs."""
    try:
        return model(*parts.inputs, **parts.named)
    except TypeError:
        _refuse_unknown(model, parts.named)
        raise


def _refuse_unknown(model: Module, named: dict[str, Any]) -> None:
    """Say so if a batch has what the model does not take."""
    known = inspect.signature(model.forward).parameters
    free = any(each.kind is each.VAR_KEYWORD for each in known.values())
    unknown = [] if free else [name for name in named if name not in known]
    if unknown:
        raise ArgumentError(
            f"the batch has {', '.join(map(repr, unknown))}, which {type(model).__name__} does "
            f"not take{close_matches(unknown[0], known)}; besides {', '.join(KEYS)} the keys of a "
            "batch are arguments of the model"
        ) from None


def _named(batch: Any) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        return {}
    return {name: value for name, value in batch.items() if name not in KEYS}


def _arguments(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


class Limit(NamedTuple):
    """When a training has gone far enough."""

    epochs: float
    steps: float

    def reached(self, epoch: int, step: int) -> bool:
        """Whether it is there."""
        return epoch >= self.epochs or step >= self.steps

    def total(self, loader: DataLoader, accumulate: int) -> int | None:
        """How many steps that is, if it can be known."""
        if loader.plan.length is None or math.isinf(self.epochs):
            return None if math.isinf(self.steps) else int(self.steps)
        return int(min(self.steps, self.epochs * (len(loader) // accumulate)))


def limits(epochs: int | None, steps: int | None) -> Limit:
    """The limit that `fit`'s arguments mean."""
    for name, value in (("epochs", epochs), ("steps", steps)):
        if value is not None and (not hasattr(value, "__index__") or value < 0):
            raise ArgumentError(f"fit: {name} must be a number from 0 up, not {value!r}")
    if epochs is None and steps is None:
        epochs = 1
    return Limit(math.inf if epochs is None else epochs, math.inf if steps is None else steps)
