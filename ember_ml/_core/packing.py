"""Shapes of weights that are stored as small integers."""

from __future__ import annotations

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError

WEIGHTS_PER_BYTE = {"int8": 1, "uint8": 2}
"""Dtype of packed weights -> number of weights in a byte."""
Shape = tuple[int, ...]


def row_width(
    op: str,
    dtype: str,
    packed: Shape,
    scale: Shape,
    shift: Shape | None,
    group_size: int,
    features: int | None,
) -> int:
    """Return the number of weights in a row of packed weights; raise if the shapes do not fit.

    Args:
        op: Name of the op, for error messages.
        dtype: Name of the dtype of the packed weights.
        packed: Shape of the packed weights.
        scale: Shape of the scales.
        shift: Shape of the shifts, if there are any.
        group_size: Number of weights with one scale.
        features: Number of weights in a row. Default: as many as the packed weights hold.
    """
    if dtype not in WEIGHTS_PER_BYTE:
        raise ArgumentTypeError(
            f"{op}: packed weights must be int8, or uint8 with two weights per byte; got {dtype}"
        )
    if group_size < 1:
        raise ArgumentError(f"{op}: group_size ({group_size}) must be at least 1")
    per_byte = WEIGHTS_PER_BYTE[dtype]
    if features is None:
        features = per_byte * (packed[-1] if packed else 0)
    row, groups = -(-features // per_byte), -(-features // group_size)
    if packed[-1:] != (row,) or scale != (*packed[:-1], groups):
        raise ShapeError(
            f"{op}: got packed weights of shape {packed} and scales of shape {scale}; rows of "
            f"{features} features in groups of {group_size} need (..., {row}) and (..., {groups})"
        )
    if shift is not None and shift != scale:
        raise ShapeError(f"{op}: shift has shape {shift}, but scale has shape {scale}")
    return features
