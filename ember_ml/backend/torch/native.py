"""Access of the C kernels to torch tensors on the CPU."""

from __future__ import annotations

import torch

from ember_ml import _native
from ember_ml._native.frame import Frame

_ITEMSIZES = {torch.float32: 4, torch.float64: 8}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def frame(*tensors: torch.Tensor | None) -> Frame | None:
    """Return the access to tensors of one dtype; None if the kernels do not serve them.

    They serve dense tensors in memory. A dispatch mode or a tracer must see torch's own ops.

    Args:
        tensors: Operands of a kernel; None for an operand that is not given.
    """
    library = _native.library
    if library is None or torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state():
        return None
    first: torch.Tensor | None = None
    for x in tensors:
        if x is None:
            continue
        first = x if first is None else first
        if x.dtype is not first.dtype or not _is_dense(x):
            return None
    if first is None or first.dtype not in _ITEMSIZES:
        return None
    dtype = first.dtype
    return Frame(
        library,
        _ITEMSIZES[dtype],
        torch.Tensor.data_ptr,
        torch.Tensor.stride,
        lambda x, shape: x.expand(shape).contiguous(),
        lambda shape: torch.empty(shape, dtype=dtype, device="cpu"),
        torch.nn.functional.linear,
        torch.get_num_threads(),
    )


def _is_dense(x: torch.Tensor) -> bool:
    return (
        type(x) in _PLAIN
        and x.device.type == "cpu"
        and x.layout is torch.strided
        and not x.is_neg()
        and not torch._C._functorch.is_legacy_batchedtensor(x)
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )
