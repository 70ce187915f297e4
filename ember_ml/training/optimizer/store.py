"""What an optimizer keeps for its parameters from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.nn import Parameter
from ember_ml.nn.state_dict import checked_state
from ember_ml.training.optimizer.plan import kernels, wide
from ember_ml.training.optimizer.rules import Slot


class Entry(NamedTuple):
    """A kept array: for which parameter, and what it is."""

    key: str
    """ "slot/name of the parameter"."""
    parameter: Parameter
    slot: Slot


class Layout:
    """The order of the kept arrays.

    Attributes:
        entries: one for each array.
        places: for each parameter, slot -> position.
    """

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[Parameter],
        slots: Sequence[Mapping[str, Slot]],
    ) -> None:
        self.entries: list[Entry] = []
        self.places: list[dict[str, int]] = []
        for name, parameter, own in zip(names, parameters, slots, strict=True):
            first = len(self.entries)
            self.places.append({slot: first + at for at, slot in enumerate(own)})
            self.entries += [Entry(f"{key}/{name}", parameter, slot) for key, slot in own.items()]

    def fresh(self) -> list[Any]:
        """The arrays before the first step."""
        return [_first_value(entry.parameter, entry.slot) for entry in self.entries]

    def take(self, owner: str, tensors: Mapping[str, Any]) -> list[Any]:
        """The arrays of saved tensors, of any backend; an error names what does not fit."""
        known = {entry.key: entry for entry in self.entries}
        shapes = {key: entry.slot.shape for key, entry in known.items()}
        values = checked_state(owner, shapes, tensors, lambda key, value: _moved(value, known[key]))
        return [values[entry.key]._data for entry in self.entries]

    def saved(self, arrays: Sequence[Any]) -> dict[str, Tensor]:
        """The arrays as tensors by key, copied: a later step leaves them alone."""
        if not arrays:
            return {}
        backend = self.entries[0].parameter.backend
        return self.named(kernels(backend).copy(arrays), backend)

    def named(self, arrays: Sequence[Any], backend: str) -> dict[str, Tensor]:
        """The arrays as tensors by key."""
        return {
            entry.key: wrap(array, backend)
            for entry, array in zip(self.entries, arrays, strict=True)
        }


def _first_value(parameter: Parameter, slot: Slot) -> Any:
    k = kernels(parameter.backend)
    if slot.fill is not None:
        return k.full(parameter._data, slot.shape, slot.fill, wide(parameter))
    return k.cast(k.copy([parameter._data]), wide(parameter))[0]


def _moved(value: Any, entry: Entry) -> Tensor:
    return convert_to_tensor(
        value,
        dtype=wide(entry.parameter),
        device=entry.parameter.device,
        backend=entry.parameter.backend,
        copy=True,
    )
