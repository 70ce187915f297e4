"""Conditions under which Triton kernels are used."""

from __future__ import annotations

import importlib.util
import os

import torch

from ember_ml.backend.torch.constants import constant_result

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether Triton's interpreter runs the kernels, on CPU tensors."""

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes that all kernels take. Sums are in float32."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Types that the kernels take; subclasses such as DTensor have their own rules."""

MIN_CAPABILITY = (8, 0)
"""Oldest CUDA architecture for which the kernels are compiled in the tests."""


def _reason() -> str:
    if os.environ.get("EMBER_ML_TRITON") == "0":
        return "disabled by EMBER_ML_TRITON=0"
    return "" if importlib.util.find_spec("triton") else "triton is not installed"


REASON = _reason()
"""Why no Triton kernel is used on any device; empty if they can be."""


def unavailable() -> str:
    """Return why no Triton kernel is used in this process; empty if they are."""
    if REASON:
        return REASON
    if not torch.cuda.is_available():
        return "no CUDA device"
    return "" if _is_recent(0) else "the CUDA device is older than compute capability 8.0"


def serves(*arrays: torch.Tensor | None) -> bool:
    """Return whether Triton kernels take these arrays.

    Args:
        arrays: Operands; the first is not None.
    """
    first = arrays[0]
    if REASON or first is None:
        return False
    if not (first.is_cuda or (INTERPRETED and first.device.type == "cpu")):
        return False
    if first.dtype not in FLOATS:
        return False
    for x in arrays:
        if x is None:
            continue
        if x.device != first.device or x.dtype != first.dtype or type(x) not in _PLAIN:
            return False
    return INTERPRETED or _is_recent(first.device.index or 0)


_recent: dict[int, bool] = {}


@constant_result
def _is_recent(index: int) -> bool:
    """Return whether a device is new enough. ROCm has no such numbers.

    Args:
        index: Index of the device.
    """
    if index not in _recent:
        capability = torch.cuda.get_device_capability(index)
        _recent[index] = torch.version.hip is not None or capability >= MIN_CAPABILITY
    return _recent[index]
