"""The parts of a batch: arguments of the model, targets and weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.data.collate import PaddedLengths, PaddedMask
from ember_ml.nn.module import Module
from ember_ml.registry.base import close_matches


class Parts(NamedTuple):
    """The parts of a batch."""

    inputs: tuple[Any, ...]
    named: dict[str, Any]
    """Keyword arguments of the model."""
    targets: Any
    options: dict[str, Any]
    """Keyword arguments of the loss."""


KEYS = ("inputs", "targets", "mask", "sample_weight")
"""Keys of a batch that is a dict; other keys are arguments of the model."""


def split(batch: object, with_targets: bool, takes_mask: bool = False) -> Parts:
    """Split a batch into its parts.

    A tuple is (inputs, targets) or (inputs, targets, weights), a dict has the keys `KEYS`. A tuple
    of inputs is passed to the model as several arguments. The mask of a dict is a padding mask: it
    is for a model that takes one, and for the loss if it fits the targets. The third part of a
    tuple and `sample_weight` are not passed to the model.

    Args:
        batch: The batch.
        with_targets: Whether it has targets; without, all of it is the input.
        takes_mask: Whether the model takes a padding mask.
    """
    if isinstance(batch, (PaddedLengths, PaddedMask)):
        batch = _with_mask(batch, with_targets)
    if not with_targets:
        if isinstance(batch, Mapping) and "inputs" in batch:
            return inputs_of(batch, takes_mask)
        return Parts(tuple(batch) if isinstance(batch, (tuple, list)) else (batch,), {}, None, {})
    if isinstance(batch, Mapping):
        missing = [key for key in ("inputs", "targets") if key not in batch]
        if missing:
            raise ArgumentError(
                "a batch that is a dict must have 'inputs' and 'targets' (and may have 'mask', "
                f"'sample_weight' and arguments of the model); {sorted(batch)} has no "
                f"{' and no '.join(missing)}; for other batches override Trainer.compute"
            )
        named = _named(batch) | _mask_argument(batch.get("mask"), takes_mask)
        weight = _loss_mask(batch, takes_mask)
        return Parts(_arguments(batch["inputs"]), named, batch["targets"], _weights(weight))
    if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
        inputs, targets, weight = [*batch, None][:3]
        return Parts(_arguments(inputs), {}, targets, _weights(weight))
    raise ArgumentError(
        "a batch must be (inputs, targets), (inputs, targets, weights) or a dict with the keys "
        f"{', '.join(KEYS)}; for other batches override Trainer.compute"
    )


def takes_mask(model: Module) -> bool:
    """Return whether a model's `forward` takes a padding mask."""
    return "mask" in inspect.signature(model.forward).parameters


def _weights(weight: Any) -> dict[str, Any]:
    return {} if weight is None else {"sample_weight": weight}


def _mask_argument(mask: Any, takes_mask: bool) -> dict[str, Any]:
    """Return the mask as an argument of a model that takes one; not weights."""
    if not (takes_mask and isinstance(mask, EmberTensor)) or mask.dtype.is_floating:
        return {}
    return {"mask": mask if mask.dtype.kind == "bool" else ops.astype(mask, "bool")}


def _is_for_inputs_only(mask: Any, targets: Any) -> bool:
    """Return whether a mask has axes that the targets lack."""
    if not (isinstance(mask, EmberTensor) and isinstance(targets, EmberTensor)):
        return isinstance(mask, EmberTensor) and not isinstance(targets, EmberTensor)
    return mask.shape != targets.shape[: mask.ndim]


def _with_mask(padded: PaddedLengths | PaddedMask, with_targets: bool) -> _Padded:
    """Return the output of `pad_collate` as a batch with masks."""
    batch, extent = padded
    if isinstance(batch, Mapping):
        parts, extents = dict(batch), extent
    elif with_targets and isinstance(batch, (tuple, list)) and len(batch) == 2:
        names = ("inputs", "targets")
        parts, extents = dict(zip(names, batch, strict=True)), dict(zip(names, extent, strict=True))
    else:
        parts, extents = {"inputs": batch}, {"inputs": extent}
    masks = {
        key: _first_mask(parts[key], extents[key], isinstance(padded, PaddedLengths))
        for key in ("inputs", "targets")
        if key in parts
    }
    parts.setdefault("mask", masks.get("inputs"))
    parts.setdefault("sample_weight", masks.get("targets"))
    return _Padded({key: value for key, value in parts.items() if value is not None})


def _first_mask(part: Any, extent: Any, is_length: bool) -> Tensor | None:
    """Return the padding mask of the first padded array of a part of a batch."""
    arrays = tree.leaves_of(part)
    extents = [] if extent is None else tree.leaves_of(extent)
    pairs = zip(arrays, extents, strict=True) if len(arrays) == len(extents) else ()
    for array, each in pairs:
        if isinstance(each, EmberTensor):
            if not is_length:
                return each
            positions = ops.arange(array.shape[1], dtype=each.dtype)
            return ops.less(positions, each[:, None])
    return None


def weight_of(batch: object, mask: Tensor | None) -> float:
    """Return the weight of a batch in a mean: the sum of its mask, or its number of examples."""
    if isinstance(mask, EmberTensor):  # a dict or tuple has a mask for each output
        return float(ops.sum(ops.astype(mask, "float32")))
    first = next((x for x in tree.leaves_of(batch) if isinstance(x, EmberTensor)), None)
    return float(first.shape[0]) if first is not None and first.ndim else 1.0


def loss_weight(batch: object, with_targets: bool, takes_mask: bool = False) -> Tensor | float:
    """Return the weight of a batch's loss: the sum of its mask, or its number of targets.

    Without targets it is the number of examples. Nothing is read from the device.

    Args:
        batch: The batch.
        with_targets: Whether it has targets.
        takes_mask: Whether the model takes a padding mask.
    """
    if isinstance(batch, (PaddedLengths, PaddedMask)):
        batch = _with_mask(batch, with_targets)
    splits = isinstance(batch, Mapping) or (isinstance(batch, (tuple, list)) and len(batch) > 1)
    if not (with_targets and splits):
        return weight_of(batch, None)
    parts: Any = batch
    mapping = isinstance(batch, Mapping)
    targets = parts.get("targets") if mapping else parts[1]
    mask = _loss_mask(parts, takes_mask) if mapping else (*parts, None)[2]
    if isinstance(mask, EmberTensor):
        return ops.sum(ops.astype(mask, "float32"))
    first = next((x for x in tree.leaves_of(targets) if isinstance(x, EmberTensor)), None)
    return weight_of(batch, None) if first is None else float(first.size)


def _loss_mask(batch: Mapping[str, Any], takes_mask: bool) -> Any:
    """Return the weights of the loss; of a mask that the model takes, only if it fits."""
    weight, mask = batch.get("sample_weight"), batch.get("mask")
    if weight is not None or isinstance(batch, _Padded):  # whose mask is for the inputs only
        return weight
    return None if takes_mask and _is_for_inputs_only(mask, batch.get("targets")) else mask


class _Padded(dict[str, Any]):
    """The output of `pad_collate` as a dict."""


def inputs_of(batch: object, takes_mask: bool = False) -> Parts:
    """Return the model's arguments in a batch, which may also have targets.

    Args:
        batch: The batch.
        takes_mask: Whether the model takes a padding mask.
    """
    if isinstance(batch, (PaddedLengths, PaddedMask)):
        batch = _with_mask(batch, with_targets=True)
    if isinstance(batch, Mapping) and "inputs" in batch:
        named = _named(batch) | _mask_argument(batch.get("mask"), takes_mask)
        return Parts(_arguments(batch["inputs"]), named, None, {})
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


def _named(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name not in KEYS}


def _arguments(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
