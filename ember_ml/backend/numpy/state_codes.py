"""Optimizer state in 8 bits: `encode_state` and `decode_state` of `Optimization`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ember_ml.backend.interface import STATE_BLOCK


def encode_state(
    xs: Sequence[np.ndarray], like: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return 8-bit codes, in rows of STATE_BLOCK elements, and the scale of each row."""
    pairs = [_encode(x, y.dtype) for x, y in zip(xs, like, strict=True)]
    return [codes for codes, _ in pairs], [scales for _, scales in pairs]


def _encode(x: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    flat = x.reshape(-1)
    rows = np.pad(flat, (0, -flat.size % STATE_BLOCK)).reshape(-1, STATE_BLOCK)
    sizes = np.abs(rows)
    scales = sizes.max(axis=1, keepdims=True)
    np.sqrt(np.divide(sizes, np.where(scales == 0, np.float32(1), scales), out=sizes), out=sizes)
    if dtype == np.int8:
        codes = np.rint(np.multiply(sizes, np.float32(127), out=sizes), out=sizes)
        return np.copysign(codes, rows, out=codes).astype(dtype), scales
    np.sqrt(sizes, out=sizes)
    codes = np.rint(np.multiply(sizes, np.float32(255), out=sizes), out=sizes)
    return np.maximum(codes, rows != 0, out=codes).astype(dtype), scales


def decode_state(
    codes: Sequence[np.ndarray], scales: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]]
) -> list[np.ndarray]:
    """Return new float32 arrays of the given shapes from codes and scales."""
    return [_decode(*each) for each in zip(codes, scales, shapes, strict=True)]


def _decode(codes: np.ndarray, scales: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    rows = codes.astype(np.float32)
    if codes.dtype == np.int8:
        rows *= np.float32(1.0 / 127.0)
        rows *= np.abs(rows)
    else:
        rows *= np.float32(1.0 / 255.0)
        np.square(np.square(rows, out=rows), out=rows)
    rows *= scales
    return rows.reshape(-1)[: math.prod(shape)].reshape(shape)
