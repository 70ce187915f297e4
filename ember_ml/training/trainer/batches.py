"""The data of a trainer: loaders, and the parts of a batch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.data import ArrayDataset, DataLoader, Dataset, IterableDataset
from ember_ml.nn.module import Module
from ember_ml.registry.base import close_matches

DataLike: TypeAlias = (
    DataLoader
    | Dataset
    | IterableDataset
    | Sequence[TensorLike]
    | Mapping[str, TensorLike]
    | TensorLike
)
"""A loader, a dataset, a tuple of arrays (inputs, targets) or a dict of arrays."""


def loader(data: DataLike, batch_size: int, *, shuffle: bool, seed: int) -> DataLoader:
    """Return a loader for data; a loader is returned as it is."""
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
        "data must be a DataLoader, a dataset, a tuple of arrays (inputs, targets) or a dict of "
        f"arrays, not {type(data).__name__}"
    )


def source_of(data: DataLike) -> list[object]:
    """Return the objects that identify data: its dataset or its arrays."""
    if isinstance(data, DataLoader):
        return [data.dataset]
    return tree.leaves_of(data) if isinstance(data, (tuple, list, dict)) else [data]


def inputs_loader(data: DataLike, batch_size: int) -> DataLoader:
    """Return a loader for inputs, whose targets, if any, are ignored."""
    known = isinstance(data, (DataLoader, Dataset, IterableDataset, Mapping, tuple, list))
    given: Any = data if known else (data,)
    return loader(given, batch_size, shuffle=False, seed=0)


class Parts(NamedTuple):
    """The parts of a batch."""

    inputs: tuple[Any, ...]
    named: dict[str, Any]
    """Keyword arguments of the model."""
    targets: Any
    options: dict[str, Any]
    """Keyword arguments of the loss."""


KEYS = ("inputs", "targets", "mask")
"""Keys of a batch that is a dict; other keys are arguments of the model."""


def split(batch: object, with_targets: bool) -> Parts:
    """Split a batch into its parts.

    A tuple is (inputs, targets) or (inputs, targets, mask), a dict has these keys. A tuple of
    inputs is passed to the model as several arguments.
    """
    if not with_targets:
        return Parts(tuple(batch) if isinstance(batch, (tuple, list)) else (batch,), {}, None, {})
    if isinstance(batch, Mapping):
        missing = [key for key in ("inputs", "targets") if key not in batch]
        if missing:
            raise ArgumentError(
                "a batch that is a dict must have 'inputs' and 'targets' (and may have 'mask' and "
                f"arguments of the model); {sorted(batch)} has no {' and no '.join(missing)}; for "
                "other batches override Trainer.compute"
            )
        parts = [batch["inputs"], batch["targets"], batch.get("mask")]
    elif isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        parts = [*batch, None][:3]
    else:
        raise ArgumentError(
            "a batch must be (inputs, targets), (inputs, targets, mask) or a dict with these keys; "
            "for other batches override Trainer.compute"
        )
    inputs, targets, mask = parts
    options = {} if mask is None else {"sample_weight": mask}
    return Parts(_arguments(inputs), _named(batch), targets, options)


def weight_of(batch: object, mask: Tensor | None) -> float:
    """Return the weight of a batch in a mean: the sum of its mask, or its number of examples."""
    if mask is not None:
        return float(ops.sum(ops.astype(mask, "float32")))
    first = next((x for x in tree.leaves_of(batch) if isinstance(x, EmberTensor)), None)
    return float(first.shape[0]) if first is not None and first.ndim else 1.0


def loss_weight(batch: object, with_targets: bool) -> Tensor | float:
    """Return the weight of a batch's loss: the sum of its mask, or its number of targets.

    Without targets it is the number of examples. Nothing is read from the device.
    """
    splits = isinstance(batch, Mapping) or (isinstance(batch, (tuple, list)) and len(batch) > 1)
    if not (with_targets and splits):
        return weight_of(batch, None)
    parts: Any = batch
    mapping = isinstance(batch, Mapping)
    targets = parts.get("targets") if mapping else parts[1]
    mask = parts.get("mask") if mapping else (*parts, None)[2]
    if isinstance(mask, EmberTensor):
        return ops.sum(ops.astype(mask, "float32"))
    first = next((x for x in tree.leaves_of(targets) if isinstance(x, EmberTensor)), None)
    return weight_of(batch, None) if first is None else float(first.size)


def inputs_of(batch: object) -> Parts:
    """Return the model's arguments in a batch, which may also have targets."""
    if isinstance(batch, Mapping) and "inputs" in batch:
        return Parts(_arguments(batch["inputs"]), _named(batch), None, {})
    first = batch[0] if isinstance(batch, (tuple, list)) else batch
    return Parts(_arguments(first), {}, None, {})


def apply(model: Module, parts: Parts) -> Any:
    """Return the model's outputs."""
    try:
        return model(*parts.inputs, **parts.named)
    except TypeError:
        _refuse_unknown(model, parts.named)
        raise


def _refuse_unknown(model: Module, named: dict[str, Any]) -> None:
    """Raise an error if the batch has arguments that the model does not take."""
    known = inspect.signature(model.forward).parameters
    free = any(each.kind is each.VAR_KEYWORD for each in known.values())
    unknown = [] if free else [name for name in named if name not in known]
    if unknown:
        raise ArgumentError(
            f"the batch has {', '.join(map(repr, unknown))}, which {type(model).__name__} does "
            f"not take{close_matches(unknown[0], known)}; besides {', '.join(KEYS)} the keys of a "
            "batch are arguments of the model"
        ) from None


def _named(batch: object) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        return {}
    return {name: value for name, value in batch.items() if name not in KEYS}


def _arguments(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
