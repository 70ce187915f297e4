"""Access of the C kernels to torch tensors on the CPU."""

from __future__ import annotations

from ctypes import CDLL
from typing import cast

import torch

from ember_ml import _native
from ember_ml._native.frame import Frame

SUFFIXES = {torch.float32: "f32", torch.float64: "f64"}
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_batched = torch._C._functorch.is_legacy_batchedtensor
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def frame(*tensors: torch.Tensor | None, library: CDLL | None = None) -> Frame | None:
    """Return the access to tensors of one dtype; None if the kernels do not take them.

    They take dense tensors in memory. A dispatch mode or a tracer must see torch's own ops.

    Args:
        tensors: Operands of a kernel; None for a missing one.
        library: Library of the kernels. Default: the one in use.
    """
    library = _native.library if library is None else library
    if library is None or torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state():
        return None
    first: torch.Tensor | None = None
    for x in tensors:
        if x is None:
            continue
        first = x if first is None else first
        if not is_dense(x, first.dtype):
            return None
    if first is None or first.dtype not in SUFFIXES:
        return None
    dtype = first.dtype
    return Frame(
        library,
        SUFFIXES[dtype],
        torch.Tensor.data_ptr,
        torch.Tensor.stride,
        _copy,
        lambda shape: torch.empty(shape, dtype=dtype, device="cpu"),
        torch.nn.functional.linear,
        torch.get_num_threads(),
    )


def accepted_frame(*tensors: torch.Tensor | None) -> Frame:
    """Return the access to tensors that `_kernel_calls.is_served` has accepted."""
    return cast("Frame", frame(*tensors))


def _copy(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return (x if x.shape == shape else x.expand(shape)).contiguous()


def is_plain_tensor(x: torch.Tensor) -> bool:
    """Return whether a tensor's values are in memory."""
    return type(x) in _PLAIN and x.is_cpu and x.layout is torch.strided


def is_dense(x: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether a tensor has its values in memory, of a dtype, and as they are stored."""
    return (
        is_plain_tensor(x)
        and x.dtype is dtype
        and not (x.is_neg() or _is_batched(x) or _is_wrapped(x))
    )
