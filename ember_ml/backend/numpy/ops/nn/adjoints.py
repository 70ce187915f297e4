"""Adjoints of neural network ops, by C kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend import native_softplus_linear
from ember_ml.backend.numpy import gates
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.native import frame
from ember_ml.backend.numpy.ops.nn.attention import attend_adjoint as attend_adjoint
from ember_ml.backend.numpy.ops.nn.classification import classes_of
from ember_ml.backend.numpy.ops.nn.positions import rotary_heads_adjoint as rotary_heads_adjoint

_SOFTMAX, _LOG_SOFTMAX = (
    Kernel(f"{name}_adjoint", "pppiii") for name in ("softmax", "log_softmax")
)
_LAYER_NORM = Kernel("layer_norm_adjoint", "ppppppiiri")
_RMS_NORM = Kernel("rms_norm_adjoint", "ppppppiiri")
_CROSS_ENTROPY = Kernel("cross_entropy_adjoint", "ppppiiiri")

silu_adjoint = native.elementwise_adjoint("silu")
_gelu_by_erf = native.elementwise_adjoint("gelu")
_gelu_by_tanh = native.elementwise_adjoint("gelu_tanh")


def gelu_adjoint(g: np.ndarray, x: np.ndarray, approximate: bool = False) -> np.ndarray | None:
    return (_gelu_by_tanh if approximate in (True, "tanh") else _gelu_by_erf)(g, x)


def _gated(
    name: str, g: np.ndarray, x: np.ndarray, axis: int, gate_first: bool
) -> np.ndarray | None:
    """Return the gradient of x; one half of the axis is the gate, the other one the value."""
    if not (native.is_served(x, g) and -x.ndim <= axis < x.ndim and g.ndim == x.ndim):
        return None
    (g, _), (x, moved) = native.as_rows(g, axis), native.as_rows(x, axis)
    half = g.shape[-1]
    if x.shape != (*g.shape[:-1], 2 * half):
        return None
    out = np.empty_like(x)
    parts, grads = ((m[:, :half], m[:, half:]) for m in (gates.as_rows(x), gates.as_rows(out)))
    order = 1 if gate_first else -1
    gates.pull(name, gates.as_rows(g), *parts[::order], *grads[::order])
    return np.moveaxis(out, -1, axis) if moved else out


def glu_adjoint(g: np.ndarray, x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _gated("sigmoid", g, x, axis, gate_first=False)


def swiglu_adjoint(g: np.ndarray, x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _gated("silu", g, x, axis, gate_first=True)


def silu_gate_adjoint(
    g: np.ndarray, x: np.ndarray, gate: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    if not (native.is_served(x, gate, g) and g.shape == x.shape == gate.shape):
        return None
    g, rows = np.ascontiguousarray(g).reshape(-1, x.shape[-1]), gates.as_rows(x)
    of_gate, of_x = np.empty_like(g), np.empty_like(g)
    gates.pull("silu", g, gates.as_rows(gate), rows, of_gate, of_x)
    return of_x.reshape(x.shape), of_gate.reshape(x.shape)


def softplus_linear_adjoint(
    g: np.ndarray, out: np.ndarray, x: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, ...] | None:
    if not native_softplus_linear.fits(x, weight, None, native.SMALL):
        return None
    if not g.shape == out.shape == (*x.shape[:-1], len(weight)):
        return None
    access = frame(x, weight, g, out)
    return None if access is None else native_softplus_linear.adjoint(access, g, out, x, weight)


def _of_rows(kernel: Kernel, g: np.ndarray, out: np.ndarray, axis: int) -> np.ndarray | None:
    if not native.is_served(out, g) or g.shape != out.shape or not -out.ndim <= axis < out.ndim:
        return None
    return native.along_axis(kernel, axis, g, out)


def softmax_adjoint(g: np.ndarray, out: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _of_rows(_SOFTMAX, g, out, axis)


def log_softmax_adjoint(g: np.ndarray, out: np.ndarray, axis: int = -1) -> np.ndarray | None:
    return _of_rows(_LOG_SOFTMAX, g, out, axis)


def class_cross_entropy_adjoint(
    g: np.ndarray,
    logits: np.ndarray,
    targets: np.ndarray,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> np.ndarray | None:
    axis %= max(logits.ndim, 1)
    classes = classes_of(logits, targets, ignore_index, axis)
    if classes is None or g.shape != targets.shape or g.dtype != logits.dtype:
        return None
    (x, moved), g = native.as_rows(logits, axis), np.ascontiguousarray(g)
    out = np.empty_like(x)
    _CROSS_ENTROPY(
        SUFFIXES[x.dtype.char],
        *(pointer(g), pointer(x), pointer(classes), pointer(out)),
        *(g.size, x.shape[-1], int(ignore_index), float(label_smoothing)),
        threads_for(x.size),
    )
    return np.moveaxis(out, -1, axis) if moved else out


def _of_norm(
    kernel: Kernel, g: np.ndarray, x: np.ndarray, weight: Any, eps: float, axis: int, sums: int
) -> tuple[np.ndarray, ...] | None:
    """Return the gradients of x, of the weight, and with two sums of the bias."""
    if not native.is_served(x, g, weight) or g.shape != x.shape:
        return None
    inner = x.shape[axis % x.ndim :]
    columns = int(np.prod(inner))
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    weight = None if weight is None else np.ascontiguousarray(weight)
    out, rows, parts = np.empty_like(x), x.size // columns, threads_for(x.size)
    totals = np.empty((sums, parts, columns), x.dtype)
    addresses = [native.address(array) for array in (g, x, weight, out, totals[0])]
    last = pointer(totals[1]) if sums > 1 else None
    kernel(SUFFIXES[x.dtype.char], *addresses, last, rows, columns, float(eps), parts)
    return out, *[
        each.sum(0).reshape(inner) if parts > 1 else each.reshape(inner) for each in totals
    ]


def layer_norm_adjoint(
    g: np.ndarray, x: np.ndarray, weight: Any = None, eps: float = 1e-5, axis: int = -1
) -> tuple[np.ndarray, ...] | None:
    return _of_norm(_LAYER_NORM, g, x, weight, eps, axis, 2)


def rms_norm_adjoint(
    g: np.ndarray, x: np.ndarray, weight: Any = None, eps: float = 1e-6, axis: int = -1
) -> tuple[np.ndarray, ...] | None:
    return _of_norm(_RMS_NORM, g, x, weight, eps, axis, 1)
