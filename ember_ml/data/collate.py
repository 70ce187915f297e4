"""Functions that combine examples into a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ember_ml._core import tree
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import host_arrays
from ember_ml.data.conversion import Pytree, is_numeric, to_host
from ember_ml.data.errors import check_integer

Join: TypeAlias = Callable[[Sequence[np.ndarray], str, Pytree], np.ndarray | None]


def default_collate(items: Sequence[Pytree]) -> Pytree:
    """Return examples of equal structure as one pytree of host arrays, stacked along a new axis 0.

    Tuples, lists and dicts keep their structure. Arrays, tensors, numbers and lists of numbers are
    stacked; Python floats become float32, integers int64. Other leaves, such as strings, are
    collected in a list.

    Args:
        items: The examples, at least one.

    Example:
        >>> batch = default_collate([{"x": [1.0, 2.0], "y": 0}, {"x": [3.0, 4.0], "y": 1}])
        >>> batch["y"].tolist()
        [0, 1]
    """
    return _collate("default_collate", _checked("default_collate", items), "", _stack)


class PaddedLengths(NamedTuple):
    """Padded batch with the lengths of its sequences."""

    batch: Pytree
    lengths: Pytree
    """In the structure of the batch: (batch,) for each padded array, None for other leaves."""


class PaddedMask(NamedTuple):
    """Padded batch with its padding masks."""

    batch: Pytree
    mask: Pytree
    """In the structure of the batch: (batch, time) for each padded array, None for others."""


class pad_collate:  # noqa: N801  (used like a function)
    """Collate function that pads sequences: returns (batch, lengths) or (batch, mask).

    Every array of an example is padded along `axis` to the longest one of the batch. The second
    result has the structure of the first. For each padded array it holds the lengths, (batch,), or
    a mask, (batch, time), that is False at padding. For other leaves it holds None.

    A trainer takes such batches: of examples (inputs, targets), or dicts with these keys, the mask
    of the inputs reaches a model that takes one, and the mask of padded targets reaches the loss.

    Args:
        value: Padding value, or a pytree of values in the structure of an example.
        axis: Axis of an example along which the lengths differ.
        returns: "lengths" or "mask".

    Example:
        >>> tokens, lengths = pad_collate(-1)([ops.array([1, 2, 3]), ops.array([4])])
        >>> tokens.tolist(), lengths.tolist()
        ([[1, 2, 3], [4, -1, -1]], [3, 1])
    """

    def __init__(self, value: Pytree = 0, axis: int = 0, *, returns: str = "lengths") -> None:
        self.value = value
        self.axis = check_integer("pad_collate", "axis", axis, 0)
        if returns not in ("lengths", "mask"):
            raise ArgumentError(
                f"pad_collate: returns must be 'lengths' or 'mask', not {returns!r}"
            )
        self.returns = returns

    def __call__(self, items: Sequence[Pytree]) -> PaddedLengths | PaddedMask:
        """Return the padded batch and its lengths or mask.

        Args:
            items: Examples, at least one.
        """
        items = _checked("pad_collate", items)
        padded = _collate("pad_collate", items, "", self._pad, value=self.value)
        extent = _collate("pad_collate", items, "", self._extent, rest=lambda leaves: None)
        kind = PaddedLengths if self.returns == "lengths" else PaddedMask
        return kind(padded, extent)

    def _pads(self, arrays: Sequence[np.ndarray]) -> bool:
        return all(array.ndim > self.axis for array in arrays)

    def _pad(self, arrays: Sequence[np.ndarray], path: str, value: Pytree) -> np.ndarray:
        if not self._pads(arrays):
            return _stack(arrays, path, value)
        shapes = [list(array.shape) for array in arrays]
        for shape in shapes:
            shape[self.axis] = -1
        _check_shapes("pad_collate", arrays, shapes, path, f"only axis {self.axis} may differ")
        return _pad(arrays, value, self.axis)

    def _extent(self, arrays: Sequence[np.ndarray], path: str, value: Pytree) -> np.ndarray | None:
        if not self._pads(arrays):
            return None
        lengths = np.array([array.shape[self.axis] for array in arrays], np.int64)
        return lengths if self.returns == "lengths" else np.arange(lengths.max()) < lengths[:, None]


def _pad(arrays: Sequence[np.ndarray], value: Pytree, axis: int) -> np.ndarray:
    """Return arrays stacked along a new first axis, padded to the longest along `axis`."""
    shape = list(arrays[0].shape)
    shape[axis] = max(array.shape[axis] for array in arrays)
    dtype = host_arrays.common_dtype(arrays)
    try:
        padded = np.full((len(arrays), *shape), value, dtype)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"pad_collate: value={value!r} does not fit {dtype}") from None
    for row, array in zip(padded, arrays, strict=True):
        row[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return padded


def _checked(where: str, items: Sequence[Pytree]) -> Sequence[Pytree]:
    if not isinstance(items, (list, tuple)) or not items:
        raise ArgumentError(f"{where}: pass a list of at least one example, not {items!r:.60}")
    return items


def _collate(
    where: str,
    items: Sequence[Pytree],
    path: str,
    join: Join,
    *,
    rest: Callable[[Sequence[Pytree]], list[Pytree] | None] = list,
    value: Pytree = None,
) -> Pytree:
    """Return the batch, built leaf by leaf.

    Args:
        where: Name of the function for error messages.
        items: The examples, or their parts at `path`.
        path: Position of the items in the pytree.
        join: `join(arrays, path, value)` combines the arrays of a leaf.
        rest: Combines leaves that are not numeric.
        value: Argument of `join`; of a pytree, the part at the same position.
    """
    _check_structure(where, items, path)

    def inner(part: Sequence[Pytree], key: str | int) -> Pytree:
        own = _part(value, key, path)
        return _collate(where, part, f"{path}[{key!r}]", join, rest=rest, value=own)

    first = items[0]
    if isinstance(first, dict):
        return {key: inner([item[key] for item in items], key) for key in first}
    if isinstance(first, (tuple, list)) and not _is_list_of_numbers(first):
        columns = zip(*items, strict=True)
        return tree.sequence_like(
            type(first), [inner(column, position) for position, column in enumerate(columns)]
        )
    numeric = isinstance(first, list) or is_numeric(first)
    return join(_arrays(items), path, value) if numeric else rest(items)


def _is_list_of_numbers(item: Pytree) -> bool:
    return isinstance(item, list) and all(
        type(part) in PYTHON_TYPES or _is_list_of_numbers(part) for part in item
    )


def _part(value: Pytree, key: str | int, path: str) -> Pytree:
    nested = isinstance(value, (dict, tuple, list))
    try:
        return value[key] if nested else value
    except (LookupError, TypeError):
        raise ArgumentError(
            f"pad_collate: value must have an entry for {path}[{key!r}] of the examples, not "
            f"{value!r:.60}"
        ) from None


def _arrays(items: Sequence[Pytree]) -> Sequence[np.ndarray]:
    """Return host arrays; Python numbers share one dtype: 1 and 2.5 are both float32."""
    if all(type(item) in PYTHON_TYPES for item in items):
        return host_arrays.array_of(list(items))
    return [item if isinstance(item, np.ndarray) else to_host(item) for item in items]


def _stack(arrays: Sequence[np.ndarray], path: str, value: Pytree) -> np.ndarray:
    if isinstance(arrays, np.ndarray):
        return arrays
    shapes = [list(array.shape) for array in arrays]
    hint = "use pad_collate to pad the shorter ones"
    _check_shapes("default_collate", arrays, shapes, path, hint)
    return np.stack(arrays, dtype=host_arrays.common_dtype(arrays))


def _check_shapes(
    where: str, arrays: Sequence[np.ndarray], shapes: list[list[int]], path: str, hint: str
) -> None:
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                f"{where}: example {number} of the batch has shape {arrays[number].shape}, example "
                f"0 has {arrays[0].shape}{f' at {path}' if path else ''}; {hint}"
            )


def _structure(item: Pytree) -> object:
    """Return the part of the structure that must be equal in all examples."""
    if isinstance(item, dict):
        return set(item)
    if isinstance(item, (tuple, list)) and not _is_list_of_numbers(item):
        return type(item), len(item)
    return isinstance(item, list) or is_numeric(item)


def _check_structure(where: str, items: Sequence[Pytree], path: str) -> None:
    if not isinstance(items[0], (tuple, list, dict)) and len(set(map(type, items))) == 1:
        return
    expected = _structure(items[0])
    for number, item in enumerate(items):
        if _structure(item) != expected:
            raise ArgumentTypeError(
                f"{where}: example {number} of the batch is {item!r:.60}, but example 0 is "
                f"{items[0]!r:.60}{f' at {path}' if path else ''}; the structures must be equal"
            )
