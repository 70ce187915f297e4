"""Changes of shape and order.

Functions, not methods: torch parses the arguments of `x.reshape(...)` for a microsecond longer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ember_ml._core.errors import ArgumentTypeError, AxisError, ShapeError
from ember_ml.backend.axes import listed


def reshape(
    x: torch.Tensor, shape: int | Sequence[int], *, copy: bool | None = None
) -> torch.Tensor:
    if copy is None:
        return torch.reshape(x, shape if type(shape) is tuple else listed(shape))
    shape = listed(shape)
    return x.clone().reshape(shape) if copy else x.view(shape)


def permute_dims(x: torch.Tensor, axes: Sequence[int] | None = None) -> torch.Tensor:
    if axes is None:
        return torch.t(x) if x.ndim == 2 else torch.permute(x, tuple(range(x.ndim - 1, -1, -1)))
    return torch.permute(x, tuple(axes))


def broadcast_to(x: torch.Tensor, shape: int | Sequence[int]) -> torch.Tensor:
    lengths = listed(shape)
    if any(length < 0 for length in lengths):
        raise ShapeError(f"broadcast_to: shape={shape} has a negative length")
    return torch.broadcast_to(x, lengths)


def flip(x: torch.Tensor, axis: int | Sequence[int] | None = None) -> torch.Tensor:
    if axis is None:
        axis = range(x.ndim)
    axes = listed(axis)
    if axes and not x.ndim:
        raise IndexError("a 0-d tensor has no axes")
    return torch.flip(x, axes)


def roll(
    x: torch.Tensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> torch.Tensor:
    if axis is None:
        return x.roll(sum(listed(shift)))
    axes, shifts = listed(axis), listed(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    return x.roll(shifts, axes) if axes else x


def tile(x: torch.Tensor, repetitions: int | Sequence[int]) -> torch.Tensor:
    return x.tile(listed(repetitions))


def repeat(
    x: torch.Tensor, repeats: int | Sequence[int] | torch.Tensor, axis: int | None = None
) -> torch.Tensor:
    if isinstance(repeats, int):
        return x.repeat_interleave(repeats, dim=axis)
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise ArgumentTypeError(f"repeat: repeats must be integers, not {counts.dtype}")
    length = x.numel() if axis is None else x.shape[axis]
    counts = np.broadcast_to(counts.astype(np.int64), (length,)).copy()
    return x.repeat_interleave(torch.from_numpy(counts).to(x.device), dim=axis)


def unfold(x: torch.Tensor, axis: int, size: int, step: int = 1) -> torch.Tensor:
    if x.ndim == 0:
        raise AxisError(f"unfold: axis={axis} is out of range for a 0-d tensor")
    return x.unfold(axis, size, step)


def copy(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def view_as_real(x: torch.Tensor) -> torch.Tensor:
    if x.numel() == 0:  # torch's gradient fails for empty tensors
        return torch.stack([x.real, x.imag], -1)
    return torch.view_as_real(x.resolve_conj())


def view_as_complex(x: torch.Tensor) -> torch.Tensor:
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: the last axis must be of length 2; the shape is {tuple(x.shape)}"
        )
    return make_complex(x[..., 0], x[..., 1])


def make_complex(real: torch.Tensor, imag: torch.Tensor) -> torch.Tensor:
    if real.dtype in (torch.float16, torch.bfloat16):
        real, imag = real.float(), imag.float()
    return torch.complex(real, imag)


def squeeze(x: torch.Tensor, axis: int | Sequence[int] | None = None) -> torch.Tensor:
    if axis is None:
        return torch.squeeze(x)
    axes = listed(axis)
    if any(x.shape[one] != 1 for one in axes):
        raise ShapeError(f"squeeze: axis={axis} is not of length 1 in the shape {tuple(x.shape)}")
    return torch.squeeze(x, axes)


def expand_dims(x: torch.Tensor, axis: int | Sequence[int] = 0) -> torch.Tensor:
    if isinstance(axis, int):
        return torch.unsqueeze(x, axis)
    given = listed(axis)
    ndim = x.ndim + len(given)
    axes = {one + ndim if one < 0 else one for one in given}
    if len(axes) != len(given) or not axes <= set(range(ndim)):
        raise AxisError(f"expand_dims: axis={axis} does not name {len(given)} of {ndim} axes")
    for one in sorted(axes):
        x = x.unsqueeze(one)
    return x


def swapaxes(x: torch.Tensor, axis1: int, axis2: int) -> torch.Tensor:
    return torch.swapaxes(x, axis1, axis2)


def moveaxis(
    x: torch.Tensor, source: int | Sequence[int], destination: int | Sequence[int]
) -> torch.Tensor:
    if not x.ndim and listed(source):
        raise IndexError("a 0-d tensor has no axes")
    return torch.movedim(x, source, destination)


def matrix_transpose(x: torch.Tensor) -> torch.Tensor:
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs two axes or more; the shape is {tuple(x.shape)}")
    return x.mT


def flatten(x: torch.Tensor, start_axis: int = 0, end_axis: int = -1) -> torch.Tensor:
    return torch.flatten(x, start_axis, end_axis)


def ravel(x: torch.Tensor) -> torch.Tensor:
    return torch.reshape(x, (-1,))
