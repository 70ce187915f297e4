"""Table of the fast kernels: which one computes an op on a device, and why.

An op on a device has a row for each of its kernels, and one for the framework's own functions,
which compute the calls that no kernel takes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from ember_ml.backend.selection import BACKENDS, import_backend, is_installed


class Kernel(NamedTuple):
    """Kernel of an op on a kind of device.

    Attributes:
        op: Name of the op in `ember_ml.ops`.
        backend: Name of the backend.
        device: Kind of device: "cpu", "cuda" or "metal".
        language: "C", "Triton", "Metal", "oneDNN" (which comes with torch), or "framework" for the
            framework's own functions.
        in_use: Whether this kernel computes the op on this machine.
        reason: Why the kernel is in use, or why it is not.
    """

    op: str
    backend: str
    device: str
    language: str
    in_use: bool
    reason: str


TRITON = {
    "causal_conv1d": "causal_conv1d",
    "causal_conv1d_silu": "causal_conv1d",
    "cross_entropy": "cross_entropy",
    "gated_delta_rule": "gated_delta_rule",
    "gated_linear_attention": "gated_linear_attention",
    "gated_rms_norm": "gated_rms_norm",
    "linear_recurrence": "linear_recurrence",
    "long_conv": "long_conv",
    "selective_scan": "selective_scan",
    "spiking_scan": "spiking_scan",
}
"""Ops with Triton kernels -> their modules in `ember_ml.backend.torch.kernels`."""

METAL = ("linear_recurrence", "selective_scan")
"""Ops with Metal kernels in `ember_ml.backend.mlx.kernels`."""

MLX_FAST = ("layer_norm", "rms_norm", "rope", "attend")
"""Ops that functions of `mx.fast` compute, on every device."""


def kernels() -> list[Kernel]:
    """Return the rows of all ops that have a kernel besides the framework's functions.

    Example:
        >>> from ember_ml import backend
        >>> sorted({kernel.language for kernel in backend.kernels()} - {"C", "Metal"})
        ['Triton', 'framework', 'oneDNN']
    """
    rows = [*_native(), _onednn(), *_triton(), *_metal()]
    replaced = {(row.op, row.backend, row.device) for row in rows if row.in_use}
    places = dict.fromkeys((row.op, row.backend, row.device) for row in rows)
    rows += [_framework(*place, replaced=place in replaced) for place in places]
    rows += [_mlx_fast(op) for op in MLX_FAST]
    order = {name: at for at, name in enumerate(BACKENDS)}
    return sorted(rows, key=lambda row: (row.op, order[row.backend], row.device, not row.in_use))


def _native() -> Iterator[Kernel]:
    """Yield the kernels in C."""
    from ember_ml import _native as native

    loaded, status = native.library is not None, native.status()
    for op, backends in native.BACKENDS_OF_OP.items():
        for name in backends:
            missing = _missing(name)
            yield Kernel(op, name, "cpu", "C", loaded and not missing, missing or status)


def _onednn() -> Kernel:
    """Return the row of linear maps by oneDNN."""
    reason, in_use = _missing("torch"), False
    if not reason:
        products = importlib.import_module("ember_ml.backend.torch.products")
        in_use = products.onednn_is_faster()
        others = "torch's own product is as fast on this processor"
        reason = "faster on this processor" if in_use else others
    return Kernel("linear", "torch", "cpu", "oneDNN", in_use, reason)


def _triton() -> Iterator[Kernel]:
    reason = _missing("torch")
    if not reason:
        reason = importlib.import_module("ember_ml.backend.torch.kernels").unavailable()
    for op in TRITON:
        yield Kernel(op, "torch", "cuda", "Triton", not reason, reason or "fastest on this device")


def _metal() -> Iterator[Kernel]:
    reason = _missing("mlx") or _no_metal()
    for op in METAL:
        yield Kernel(op, "mlx", "metal", "Metal", not reason, reason or "fastest on this device")


def _framework(op: str, backend: str, device: str, *, replaced: bool) -> Kernel:
    """Return the row of the framework's own functions.

    Args:
        op: Name of the op.
        backend: Name of the backend.
        device: Kind of device.
        replaced: Whether another kernel computes the op.
    """
    missing = _missing(backend) or _without(backend, device)
    reason = missing or ("another kernel is faster" if replaced else "no other kernel is available")
    return Kernel(op, backend, device, "framework", not replaced and not missing, reason)


def _mlx_fast(op: str) -> Kernel:
    missing = _missing("mlx")
    device = "cpu" if missing or _no_metal() else "metal"
    return Kernel(op, "mlx", device, "framework", not missing, missing or "a function of mx.fast")


def _missing(backend: str) -> str:
    """Return the reason if the backend's framework is not installed, otherwise an empty string."""
    return "" if is_installed(backend) else f"{BACKENDS[backend].package} is not installed"


def _without(backend: str, device: str) -> str:
    """Return the reason if the machine has no such device, otherwise an empty string."""
    if device == "cuda" and "cuda" not in import_backend(backend).devices():
        return "no CUDA device"
    return _no_metal() if device == "metal" else ""


def _no_metal() -> str:
    return "" if "gpu" in import_backend("mlx").devices() else "no Metal device"
