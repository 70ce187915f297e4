"""How the state of an optimizer is stored: in 8 bits, and on another device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypedDict

from ember_ml._core import runtime
from ember_ml._core.errors import DeviceError
from ember_ml._core.tensor import Tensor
from ember_ml.backend import devices
from ember_ml.backend.interface import STATE_BLOCK, Array, Arrays, Optimization

Shape: TypeAlias = tuple[int, ...]
State: TypeAlias = dict[str, Arrays]
"""The arrays of each slot, one for each parameter."""
MIN_PACKED = 4096
"""Minimum number of elements of an array that is stored in 8 bits."""
PACKED_CHUNK_BYTES = 4 << 20
"""Maximum size of the parameters whose 8-bit state is unpacked at a time."""
CODE_DTYPES = ("int8", "uint8")
"""Dtypes of the codes: with a sign, and without."""
CODES, SCALES = ".codes", ".scales"
"""Ends of the names of the two arrays that a slot is stored in."""


class StateOptions(TypedDict, total=False):
    """Options of the stored state, which all optimizers share; see `Optimizer`."""

    state_bits: Literal[8, 32]
    state_device: str | None


class Slot(NamedTuple):
    """An array that is stored for a parameter from step to step, such as a moving average."""

    shape: Shape
    fill: float | None = 0.0
    """Initial value of the elements; None: the parameter's own values."""
    is_positive: bool = False
    """Whether no element is negative: 8-bit codes then have all 256 levels for its magnitude."""
    is_exact: bool = False
    """Whether the slot is never stored in 8 bits, such as a second copy of the parameters."""


class Part(NamedTuple):
    """A stored array: a slot, or the codes or the scales of a slot in 8 bits."""

    shape: Shape
    dtype: str
    fill: float | None


@dataclass(frozen=True)
class Storage:
    """Where and how the arrays of an optimizer's slots are stored.

    In 8 bits, blocks of 256 elements have a common scale, their maximum magnitude. The codes are
    not linear, so that small elements of a block do not become 0: signed values are stored by
    their square root, and second moments, which are divided by, by their fourth root.

    Reference: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", 2022.
    """

    bits: int = 32
    device: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether arrays are stored as they are, next to the parameters."""
        return self.bits == 32 and self.device is None

    def packs(self, slot: Slot, dtype: str) -> bool:
        """Return whether a slot is stored in 8 bits."""
        if self.bits == 32 or dtype != "float32" or slot.is_exact or slot.fill is None:
            return False
        return math.prod(slot.shape) >= MIN_PACKED

    def parts(self, slots: Mapping[str, Slot], dtype: str) -> dict[str, Part]:
        """Return the arrays that store the slots of a parameter, by name."""
        parts: dict[str, Part] = {}
        for name, slot in slots.items():
            if not self.packs(slot, dtype):
                parts[name] = Part(slot.shape, dtype, slot.fill)
                continue
            blocks = -(-math.prod(slot.shape) // STATE_BLOCK)
            kind = "uint8" if slot.is_positive else "int8"
            full = (255.0 if slot.is_positive else 127.0) if slot.fill else 0.0
            parts[name + CODES] = Part((blocks, STATE_BLOCK), kind, full)
            parts[name + SCALES] = Part((blocks, 1), "float32", slot.fill)
        return parts

    def place(self, backend: str, array: Array) -> Array:
        """Return an array on the device of the state."""
        if self.device is None:
            return array
        devices.check(backend, self.device)
        module = runtime.LOADED[backend]
        placed = module.to_device(array, self.device)
        actual = module.device_of(placed)
        if actual.partition(":")[0] != self.device.partition(":")[0]:
            raise DeviceError(
                f"state_device={self.device!r}: the devices of the {backend} backend share their "
                f"memory ({', '.join(module.devices())}), so that nothing can be moved"
            )
        return placed

    def place_all(self, backend: str, state: State) -> State:
        """Return the stored arrays on the device of the state."""
        if self.device is None:
            return state
        return {name: [self.place(backend, x) for x in xs] for name, xs in state.items()}


def fetched(backend: str, state: State, like: Array) -> State:
    """Return the stored arrays on the device of an array."""
    module = runtime.LOADED[backend]
    device = module.device_of(like)
    return {name: [module.to_device(x, device) for x in xs] for name, xs in state.items()}


def unpacked(k: Optimization, state: State, like: Arrays) -> State:
    """Return the arrays of the slots; those in 8 bits have the shapes of the parameters.

    Args:
        k: The backend's arithmetic on lists of arrays.
        state: Stored arrays.
        like: Parameters.
    """
    slots: State = {}
    for name, arrays in state.items():
        if name.endswith(CODES):
            slot = name.removesuffix(CODES)
            slots[slot] = k.decode_state(arrays, state[slot + SCALES], k.shapes(like))
        elif not name.endswith(SCALES):
            slots[name] = arrays
    return slots


def packed(k: Optimization, slots: State, stored: State) -> State:
    """Return the arrays to store for slots.

    Args:
        k: The backend's arithmetic on lists of arrays.
        slots: Arrays of the slots.
        stored: The arrays that were stored before, which have the same names and dtypes.
    """
    state: State = {}
    for name, arrays in slots.items():
        if name + CODES in stored:
            codes, scales = k.encode_state(arrays, stored[name + CODES])
            state |= {name + CODES: codes, name + SCALES: scales}
        else:
            state[name] = arrays
    return state


def decoded(
    k: Optimization, tensors: Mapping[str, Tensor], shape_of: Callable[[str], Shape]
) -> dict[str, Tensor]:
    """Return stored tensors with the slots in 8 bits as values, which can be divided.

    What does not fit is left as it is.

    Args:
        k: The backend's arithmetic on lists of arrays.
        tensors: Tensors by name, such as "optimizer/slot/parameter name".
        shape_of: Function of the name of a parameter that returns its shape.
    """
    result = dict(tensors)
    for key, codes in tensors.items():
        slot, _, name = key.rpartition("/")
        bare = slot.removesuffix(CODES)
        scales = f"{bare}{SCALES}/{name}"
        if bare == slot or scales not in tensors:
            continue
        value = _decode(k, codes, tensors[scales], shape_of(name))
        if value is not None:
            del result[key], result[scales]
            result[f"{bare}/{name}"] = value
    return result


def _decode(k: Optimization, codes: Tensor, scales: Tensor, shape: Shape) -> Tensor | None:
    """Return the values of a slot in 8 bits; None if it does not have the shape."""
    rows = -(-math.prod(shape) // STATE_BLOCK)
    shapes = codes.shape, scales.shape
    if codes.dtype.name not in CODE_DTYPES or shapes != ((rows, STATE_BLOCK), (rows, 1)):
        return None
    (array,) = k.decode_state([codes.native], [scales.native], [shape])
    return Tensor.from_native(array, codes.backend)


def converted(
    k: Optimization,
    backend: str,
    saved: Sequence[Tensor | None],
    part: Part,
    shape: Shape,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return a saved slot in the form in which it is stored: values, or codes and scales.

    Args:
        k: The backend's arithmetic on lists of arrays.
        backend: The backend.
        saved: Values, codes and scales; None for those that were not saved.
        part: The array to store: the values or the codes.
        shape: Shape of the parameter.

    Returns:
        Values, codes and scales; None for those that are not stored, and if the saved slot does
        not fit.
    """
    values, codes, scales = saved
    if part.dtype in CODE_DTYPES and values is not None and values.shape == shape:
        like = k.full(values.native, (), 0.0, part.dtype)
        arrays = k.encode_state(k.cast([values.native], "float32"), [like])
        stored = [Tensor.from_native(x, backend) for (x,) in arrays]
        return None, stored[0], stored[1]
    if codes is not None and scales is not None and part.dtype not in CODE_DTYPES:
        return (_decode(k, codes, scales, shape) if part.shape == shape else None), None, None
    return None, None, None
