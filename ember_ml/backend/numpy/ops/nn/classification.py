"""Cross-entropy of classes, by a C kernel that stores no probabilities."""

from __future__ import annotations

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native

_CROSS_ENTROPY = Kernel("cross_entropy", "pppiiiri")


def classes_of(
    logits: np.ndarray, targets: np.ndarray, ignore_index: int, axis: int
) -> np.ndarray | None:
    """Return the targets for a kernel; None if it cannot take them, or they are not valid."""
    if type(ignore_index) is not int or not -logits.ndim <= axis < logits.ndim:
        return None
    if not native.is_served(logits):
        return None
    if targets.shape != logits.shape[:axis] + logits.shape[axis:][1:] or not targets.size:
        return None
    classes = np.ascontiguousarray(targets, np.int64)
    low, high = int(classes.min()), int(classes.max())
    if low < 0 or high >= logits.shape[axis]:
        valid = classes[classes != ignore_index]
        if valid.size and (valid.min() < 0 or valid.max() >= logits.shape[axis]):
            return None
    return classes


def class_cross_entropy(
    logits: np.ndarray,
    targets: np.ndarray,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> np.ndarray | None:
    axis %= max(logits.ndim, 1)
    classes = classes_of(logits, targets, ignore_index, axis)
    if classes is None:
        return None
    x, _ = native.as_rows(logits, axis)
    out = np.empty(targets.shape, x.dtype)
    _CROSS_ENTROPY(
        SUFFIXES[x.dtype.char],
        *(pointer(x), pointer(classes), pointer(out)),
        *(out.size, x.shape[-1], int(ignore_index), float(label_smoothing)),
        threads_for(x.size),
    )
    return out
