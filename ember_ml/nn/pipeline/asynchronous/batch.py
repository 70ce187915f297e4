"""Batches: how items are grouped, collated and split."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml._core import tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import EmberTensor
from ember_ml.nn._inputs import as_tensors
from ember_ml.nn.module import Module
from ember_ml.nn.pipeline.asynchronous.errors import StageError


@dataclass(frozen=True)
class Batch:
    """Grouping of items for a stage that processes several at once.

    Args:
        size: Maximum number of items in a batch.
        max_wait: Seconds that the first item of a batch waits for others. The time runs also while
            the stage is busy. 0 runs the items that are there as soon as the stage is free.
            Default: 0.005.
        key: Function from an item to a hashable key; a batch has items of one key. It runs on the
            event loop. Default: none, one key for all.
        collate: Function from the list of items to the argument of the stage. Default: stacked
            tensors for a module, the list itself for a function.
        split: Function from the result of the stage and the number of items to a sequence with the
            result of each. Default: the slices along the first axis for a module, the result
            itself for a function.
    """

    size: int
    max_wait: float = 0.005
    key: Callable[[Any], Hashable] | None = None
    collate: Callable[[list[Any]], Any] | None = None
    split: Callable[[Any, int], Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ArgumentError(f"Batch: size must be an integer of at least 1, not {self.size!r}")
        if not isinstance(self.max_wait, (int, float)) or not 0 <= self.max_wait < math.inf:
            raise ArgumentError(
                f"Batch: max_wait must be a finite number of seconds >= 0, not {self.max_wait!r}"
            )
        for name in ("key", "collate", "split"):
            if (value := getattr(self, name)) is not None and not callable(value):
                raise ArgumentTypeError(f"Batch: {name} must be a function, not {value!r:.60}")


def stack_for(module: Module) -> Callable[[list[Any]], Any]:
    """Return the function that stacks pytrees of arrays as an argument of the module.

    Arrays become tensors as they do when the module is called with one of them.

    Args:
        module: Module that the batch is for.
    """

    def stack(*leaves: Any) -> Any:
        return ops.stack(list(as_tensors(module, leaves)))

    def collate(values: list[Any]) -> Any:
        values = list(as_tensors(module, values))  # lists of numbers are arrays, not pytrees
        structures = [tree.flatten(value)[1] for value in values]
        if any(structure != structures[0] for structure in structures):
            raise StageError("the items of a batch must have the same structure")
        return tree.map_leaves(stack, *values)

    return collate


def split_rows(result: Any, number: int) -> Sequence[Any]:
    """Return the slices of a pytree of tensors along their first axis.

    Args:
        result: Result of a module for a batch.
        number: Number of items in the batch.
    """
    leaves, structure = tree.flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, EmberTensor) or not leaf.shape or leaf.shape[0] != number:
            shape = leaf.shape if isinstance(leaf, EmberTensor) else type(leaf).__name__
            raise StageError(
                f"the result of a batch of {number} items must have {number} rows, not {shape}"
            )
    rows = zip(*(ops.unstack(leaf) for leaf in leaves), strict=True)
    return [tree.unflatten(structure, row) for row in rows]


def check_results(results: Any, number: int) -> Sequence[Any]:
    """Return the results of a batch; raise a StageError unless there is one for each item.

    Args:
        results: Result of a function for a batch.
        number: Number of items in the batch.
    """
    try:
        if isinstance(results, (str, bytes, Mapping, Set)):
            raise TypeError
        length = len(results)
    except TypeError:
        raise StageError(
            f"the result of a batch of {number} items must be a sequence, not {results!r:.60}"
        ) from None
    if length != number:
        raise StageError(f"the stage returned {length} results for a batch of {number} items")
    return results
