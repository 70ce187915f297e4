"""Checks of images, and conversions between arrays and Pillow's modes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.requirements import import_optional
from ember_ml.data.errors import check_integer

Mode: TypeAlias = Literal["RGB", "RGBA", "L", "P", "I;16"]
"""Kind of pixels: color, color with alpha, grayscale, palette indices, 16-bit grayscale."""
MODES: tuple[Mode, ...] = ("RGB", "RGBA", "L", "P", "I;16")
LARGEST = {"u1": 255, "u2": 65535}
"""Largest values of the integer dtypes of images."""


def check_image(where: str, image: object) -> np.ndarray:
    """Return an image; raise an error unless it is an array (height, width, channels).

    Args:
        where: Name of the class or function in the error.
        image: uint8, uint16 or floating-point array.
    """
    if not isinstance(image, np.ndarray):
        raise ArgumentTypeError(
            f"{where}: an image must be a NumPy array (height, width, channels), not "
            f"{type(image).__name__}; use vision.read, or np.asarray"
        )
    if image.dtype.kind != "f" and image.dtype.str[1:] not in LARGEST:
        raise ArgumentTypeError(
            f"{where}: an image must be uint8, uint16 or floating point, not {image.dtype}"
        )
    if image.ndim != 3 or 0 in image.shape:
        hint = "; add an axis with image[..., None]" if image.ndim == 2 else ""
        raise ShapeError(
            f"{where}: an image must have shape (height, width, channels), not {image.shape}{hint}"
        )
    return image


def check_size(where: str, size: object) -> tuple[int, int]:
    """Return (height, width) of a size, which may be one integer.

    Args:
        where: Name of the class or function in the error.
        size: Height and width in pixels.
    """
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ArgumentError(f"{where}: size must be (height, width), not {size!r:.60}")
        height, width = size
        return check_integer(where, "size", height, 1), check_integer(where, "size", width, 1)
    side = check_integer(where, "size", size, 1)
    return side, side


def restore_dtype(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return floating-point pixels in the dtype of an image: integers are rounded and clipped.

    Args:
        values: Pixels in the range of `dtype`.
        dtype: Dtype of the image.
    """
    if dtype.kind == "f":
        return values.astype(dtype, copy=False)
    return np.clip(np.rint(values), 0, LARGEST[dtype.str[1:]]).astype(dtype)


def from_pillow(image: Any, mode: Mode, background: tuple[int, int, int]) -> np.ndarray:
    """Return a loaded Pillow image as an array (height, width, channels).

    Args:
        image: `PIL.Image.Image`.
        mode: Kind of pixels of the result.
        background: Color under transparent pixels, if the result has no alpha.

    Raises:
        ValueError: If the pixels cannot be converted.
    """
    if mode == "P":
        if image.mode not in ("P", "L", "1"):
            raise ValueError(f"the image has no palette: its mode is {image.mode}")
        return np.asarray(image, np.uint8)[..., None]
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        return _from_16_bits(np.asarray(image), mode)
    if image.mode in ("I", "F"):
        raise ValueError(
            f"32-bit pixels (mode {image.mode}) have no defined range; store them as 8 or 16 bits"
        )
    if mode == "I;16":
        return np.asarray(image.convert("L")).astype(np.uint16)[..., None] * np.uint16(257)
    if mode != "RGBA" and image.has_transparency_data:
        color = import_optional("PIL.Image", "vision.read").new("RGBA", image.size, background)
        color.alpha_composite(image.convert("RGBA"))
        image = color.convert("RGB")
    pixels = np.array(image.convert(mode))
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _from_16_bits(pixels: np.ndarray, mode: Mode) -> np.ndarray:
    gray = pixels.astype(np.uint16)[..., None]  # also from the other byte order
    if mode == "I;16":
        return gray
    gray = ((gray.astype(np.uint32) + 128) // 257).astype(np.uint8)  # Pillow clips instead
    if mode == "L":
        return gray
    color = np.repeat(gray, 3, axis=-1)
    return color if mode == "RGB" else np.concatenate([color, np.full_like(gray, 255)], axis=-1)


def to_pillow(image: np.ndarray) -> Any:
    """Return an array as a Pillow image.

    Args:
        image: uint8 with 1, 3 or 4 channels, or uint16 with 1 channel.
    """
    pillow = import_optional("PIL.Image", "data.vision")
    pixels = image[..., 0] if image.shape[-1] == 1 else image
    return pillow.fromarray(np.ascontiguousarray(pixels))
