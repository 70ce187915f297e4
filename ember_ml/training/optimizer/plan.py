"""Batches of parameters that are updated together, and their state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentTypeError
from ember_ml._core.tensor import Tensor, TensorLike, native_arrays, placements
from ember_ml.backend.interface import Array, Arrays, Optimization, StepNumber
from ember_ml.nn import Parameter
from ember_ml.nn.state_dict import checked_state
from ember_ml.training.optimizer import storage
from ember_ml.training.optimizer.groups import Group, Options
from ember_ml.training.optimizer.storage import Part
from ember_ml.training.optimizer.storage import Shape as Shape
from ember_ml.training.optimizer.storage import Slot as Slot
from ember_ml.training.optimizer.storage import State as State

if TYPE_CHECKING:
    from ember_ml.training.optimizer.base import Optimizer

Update: TypeAlias = Callable[..., tuple[Arrays, State]]
"""(params, grads, state, values) -> (params, state)."""


def kernels(backend: str) -> Optimization:
    """Return a loaded backend's arithmetic on lists of arrays."""
    return runtime.LOADED[backend].optimization


def state_dtype(parameter: Parameter) -> str:
    """Return the dtype of a parameter's state and updates: float32 for half precision."""
    name = parameter.dtype.name
    return "float32" if name in ("float16", "bfloat16") else name


@dataclass(frozen=True)
class Batch:
    """Parameters that one call updates: of one group, slots, dtype, device and step count."""

    indices: list[int]
    parameters: list[Parameter]
    places: dict[str, list[int]]
    """Positions of the arrays of each stored part in the list of all state arrays."""
    group: Group
    options: Options
    lag: int
    """Number of steps in which the parameters had no gradient."""
    run: Update
    """The update; it may overwrite the state."""
    pure: Update
    """The update without side effects, for compilers."""

    def read(self, arrays: Sequence[Array]) -> State:
        """Return the batch's part of the state arrays."""
        return {slot: [arrays[at] for at in places] for slot, places in self.places.items()}

    def write(self, state: State, arrays: list[Array]) -> None:
        """Replace the batch's part of the state arrays."""
        for slot, places in self.places.items():
            for place, value in zip(places, state[slot], strict=True):
                arrays[place] = value


class Plan:
    """Batches of an optimizer's parameters on their current backend, and the stored state.

    Args:
        optimizer: The optimizer.
        options: Options of each of its groups.
        saved: Tensors of a saved state, from any backend. Default: the initial state.
        partial: Whether missing tensors get their initial values.

    Attributes:
        kernels: The backend's arithmetic on lists of arrays.
        state: Native arrays of all slots of all parameters.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        options: Sequence[Options],
        saved: Mapping[str, TensorLike] | None = None,
        partial: bool = False,
    ) -> None:
        self._optimizer = optimizer
        self._groups = [group for group in optimizer.groups for _ in group.names]
        self._placements = placements(optimizer.parameters)
        self._backend = _common_backend(optimizer)
        self.kernels = kernels(self._backend)
        self._shapes = self.kernels.shapes(native_arrays(optimizer.parameters))
        self._options: list[Options] = []
        self._places: list[dict[str, int]] = []
        self._storage = optimizer.storage
        self._parts: dict[str, tuple[Parameter, Part]] = {}
        for group, own in zip(optimizer.groups, options, strict=True):
            for name, parameter in zip(group.names, group.parameters, strict=True):
                self._add(name, parameter, optimizer.options_for(parameter, own))
        self.state = self._initial() if saved is None else self._read(saved, partial)
        self._compiled: dict[tuple[object, ...], Update] = {}

    def _add(self, name: str, parameter: Parameter, options: Options) -> None:
        slots = self._optimizer.slots(self._whole_shape(name, parameter), options)
        parts = self._storage.parts(slots, state_dtype(parameter))
        first = len(self._parts)
        self._options.append(options)
        self._places.append({part: first + at for at, part in enumerate(parts)})
        self._parts.update({f"{key}/{name}": (parameter, part) for key, part in parts.items()})

    def _whole_shape(self, name: str, parameter: Parameter) -> Shape:
        """Return the shape of the parameter that the optimizer updates."""
        sharing, shape = self._optimizer.sharing, parameter.shape
        return shape if sharing is None else sharing.whole_shape(name, shape)

    def is_current(self) -> bool:
        """Return whether the parameters still have the backend and dtype of this plan."""
        return self._placements == placements(self._optimizer.parameters)

    def native_gradients(self, gradients: Sequence[Tensor]) -> list[Array] | None:
        """Return native arrays; None if they lack the parameters' backends, dtypes or shapes."""
        if placements(gradients) != self._placements:
            return None
        arrays = native_arrays(gradients)
        return arrays if self.kernels.shapes(arrays) == self._shapes else None

    def tensors(self, copy: bool = False) -> dict[str, Tensor]:
        """Return the state as tensors by "slot/parameter name".

        Args:
            copy: Whether to copy the arrays, which later steps may overwrite.
        """
        arrays = self.kernels.copy(self.state) if copy and self.state else self.state
        pairs = zip(self._parts, arrays, strict=True)
        return {key: Tensor.from_native(array, self._backend) for key, array in pairs}

    def batches(self, absent: Sequence[int], lags: Sequence[int]) -> list[Batch]:
        """Return batches of all parameters but the absent ones.

        Args:
            absent: Indices of the parameters without a gradient.
            lags: Number of earlier steps in which each parameter had no gradient.
        """
        alike: dict[tuple[object, ...], list[int]] = {}
        for at in sorted(set(range(len(lags))) - set(absent)):
            device = self._optimizer.parameters[at].device
            alike.setdefault((*self._kind(at), lags[at], device), []).append(at)
        return [
            self._batch(indices, lags[indices[0]])
            for all_indices in alike.values()
            for indices in self._chunks(all_indices)
        ]

    def _kind(self, at: int) -> tuple[object, ...]:
        """Return what must be the same for parameters that one function updates."""
        parameter = self._optimizer.parameters[at]
        slots = tuple(self._places[at])
        return slots, id(self._groups[at]), parameter.decay, parameter.dtype.name

    def _chunks(self, indices: list[int]) -> Iterator[list[int]]:
        """Split indices into parts of at most CHUNK_BYTES of parameters."""
        limit = self.kernels.CHUNK_BYTES
        if not self._storage.is_plain:
            limit = storage.PACKED_CHUNK_BYTES
        part: list[int] = []
        size = 0
        for at in indices:
            nbytes = self._optimizer.parameters[at].nbytes
            if part and limit is not None and size + nbytes > limit:
                yield part
                part, size = [], 0
            part.append(at)
            size += nbytes
        yield part

    def _batch(self, indices: list[int], lag: int) -> Batch:
        first = indices[0]
        parameter = self._optimizer.parameters[first]
        options = dict(self._options[first])
        if not parameter.decay and "weight_decay" in options:
            options["weight_decay"] = 0.0
        dtypes = parameter.dtype.name, state_dtype(parameter)
        k, optimizer = self.kernels, self._optimizer
        if self._kind(first) not in self._compiled:
            own = list if optimizer.in_place else k.own
            in_place = functools.partial(_update, optimizer, k, own, options, *dtypes)
            self._compiled[self._kind(first)] = self._stored(k.compiled(in_place))
        return Batch(
            indices=indices,
            parameters=[optimizer.parameters[at] for at in indices],
            places={
                slot: [self._places[at][slot] for at in indices] for slot in self._places[first]
            },
            group=self._groups[first],
            options=options,
            lag=lag,
            run=self._compiled[self._kind(first)],
            pure=functools.partial(_pure_update, optimizer, k, options, *dtypes),
        )

    def _stored(self, update: Update) -> Update:
        """Return an update of state that may be on another device or in 8 bits.

        A lazy backend evaluates it, because pending results would hold the unpacked state.
        """
        if self._storage.is_plain:
            return update
        module, backend = runtime.LOADED[self._backend], self._backend

        def run(
            params: Arrays, grads: Arrays, state: State, values: tuple[StepNumber, ...]
        ) -> tuple[Arrays, State]:
            here = storage.fetched(backend, state, params[0])
            params, new = update(params, grads, here, values)
            new = self._storage.place_all(backend, new)
            module.autodiff.evaluate([*params, *[x for xs in new.values() for x in xs]])
            return params, new

        return run

    def _initial(self) -> list[Array]:
        return [self._initial_value(*each) for each in self._parts.values()]

    def _initial_value(self, parameter: Parameter, part: Part) -> Array:
        k = self.kernels
        if part.fill is None:
            value = k.cast(k.copy([parameter.native]), part.dtype)[0]
        else:
            value = k.full(parameter.native, part.shape, part.fill, part.dtype)
        return self._storage.place(self._backend, value)

    def _read(self, saved: Mapping[str, TensorLike], partial: bool) -> list[Array]:
        """Convert saved tensors to native arrays; a StateDictError lists what does not fit."""
        saved = self._restored(saved) if isinstance(saved, Mapping) else saved
        if partial:
            new = {
                key: Tensor.from_native(self._initial_value(*each), self._backend)
                for key, each in self._parts.items()
                if key not in saved
            }
            saved = {**saved, **new}
        shapes = {key: part.shape for key, (_, part) in self._parts.items()}

        def convert(key: str, value: TensorLike) -> Tensor:
            parameter, part = self._parts[key]
            return convert_to_tensor(
                value,
                dtype=part.dtype,
                device=self._storage.device or parameter.device,
                backend=parameter.backend,
                copy=True,
            )

        values = checked_state(type(self._optimizer).__name__, shapes, saved, convert)
        return [self._storage.place(self._backend, values[key].native) for key in self._parts]

    def _restored(self, saved: Mapping[str, TensorLike]) -> Mapping[str, TensorLike]:
        """Return a saved state with slots in 8 bits and in 32 bits as this plan stores them.

        What does not fit is left for the check of names and shapes.
        """
        result = dict(saved)
        for key, (parameter, part) in self._parts.items():
            slot, _, name = key.partition("/")
            if key in saved or slot.endswith(storage.SCALES):
                continue
            bare = slot.removesuffix(storage.CODES)
            keys = [f"{bare}{end}/{name}" for end in ("", storage.CODES, storage.SCALES)]
            given = [
                convert_to_tensor(saved[at], backend=self._backend) if at in saved else None
                for at in keys
            ]
            shape = self._whole_shape(name, parameter)
            new = storage.converted(self.kernels, self._backend, given, part, shape)
            if any(x is not None for x in new):
                result = {at: x for at, x in result.items() if at not in keys}
                result |= {at: x for at, x in zip(keys, new, strict=True) if x is not None}
        return result


def _common_backend(optimizer: Optimizer) -> str:
    backends = sorted({parameter.backend for parameter in optimizer.parameters})
    if len(backends) > 1:
        raise ArgumentTypeError(
            f"{type(optimizer).__name__}: the parameters must be on one backend, not on "
            f"{', '.join(backends)}; move them with module.to_backend(...)"
        )
    return backends[0]


def _update(
    optimizer: Optimizer,
    k: Optimization,
    own: Callable[[Arrays], Arrays],
    options: Options,
    dtype: str,
    wide: str,
    params: Arrays,
    grads: Arrays,
    state: State,
    values: tuple[StepNumber, ...],
) -> tuple[Arrays, State]:
    """Update parameters of one dtype; `own` returns arrays that may be overwritten."""
    params = own(params) if dtype == wide else k.cast(params, wide)
    grads = k.cast(grads, wide)
    slots = storage.unpacked(k, state, params)
    params, slots = optimizer.update_step(k, params, grads, slots, options, values)
    return (params if dtype == wide else k.cast(params, dtype)), storage.packed(k, slots, state)


def _pure_update(
    optimizer: Optimizer,
    k: Optimization,
    options: Options,
    dtype: str,
    wide: str,
    params: Arrays,
    grads: Arrays,
    state: State,
    values: tuple[StepNumber, ...],
) -> tuple[Arrays, State]:
    copied: State = {part: k.copy(xs) for part, xs in state.items()}
    return _update(optimizer, k, k.copy, options, dtype, wide, params, grads, copied, values)
