"""Reading and writing of image files through Pillow."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.files import open_regular, write_atomically
from ember_ml._core.requirements import import_optional
from ember_ml.data.errors import DataFileError, check_integer
from ember_ml.data.files import PathLike
from ember_ml.data.vision.pixels import MODES, Mode, check_image, from_pillow, to_pillow

SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".gif": "GIF",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
    ".ppm": "PPM",
    ".pgm": "PPM",
    ".pbm": "PPM",
}
"""Suffix of a file -> its format. No other format is read: some of them run programs."""
MAX_PIXELS = 1 << 26
"""Default limit of the number of pixels of a file, 8192 x 8192."""
_ORIENTATION = 0x0112
_LOSSLESS_16_BITS = ("PNG", "TIFF")


class ImageInfo(NamedTuple):
    """Properties of an image file."""

    height: int
    """Height in pixels, as stored: before the rotation of its EXIF orientation."""
    width: int
    """Width in pixels, as stored."""
    mode: str
    """Kind of pixels in Pillow's terms, such as "RGB", "L", "P" or "CMYK"."""
    format: str
    """Format of the content, such as "PNG"."""


def info(path: PathLike) -> ImageInfo:
    """Return the properties of an image file without decoding its pixels.

    Args:
        path: PNG, JPEG, BMP, GIF, TIFF, WebP or PPM file.

    Raises:
        DataFileError: If the file is missing, empty or not an image.
    """
    with _opened(path) as image:
        return ImageInfo(image.height, image.width, image.mode, _format(image))


def read(
    path: PathLike,
    mode: Mode = "RGB",
    *,
    background: tuple[int, int, int] = (255, 255, 255),
    orient: bool = True,
    strict: bool = True,
    max_pixels: int = MAX_PIXELS,
) -> np.ndarray:
    """Return the pixels of an image file, (height, width, channels).

    Of an animation, it returns the first frame.

    Args:
        path: PNG, JPEG, BMP, GIF, TIFF, WebP or PPM file.
        mode: "RGB", "RGBA" (with alpha), "L" (grayscale), "P" (palette indices, such as the classes
            of a segmentation mask) or "I;16" (16-bit grayscale). Default: "RGB".
        background: Color under transparent pixels if the mode has no alpha. Default: white.
        orient: Whether to rotate the image as its EXIF orientation says. Default: True.
        strict: Whether a file whose content and suffix are of different formats is an error.
            Default: True.
        max_pixels: Largest number of pixels to decode, against decompression bombs. Pillow has a
            second limit, `PIL.Image.MAX_IMAGE_PIXELS`. Default: 2**26.

    Returns:
        uint8 array with 3, 4 or 1 channels; uint16 for "I;16".

    Raises:
        DataFileError: If the file is missing, empty, truncated, damaged, too large, or not an image
            of the expected format.

    Example:
        >>> import tempfile
        >>> from ember_ml.data import vision
        >>> folder = tempfile.TemporaryDirectory()
        >>> vision.write(f"{folder.name}/gray.png", ops.full((2, 3, 1), 0.2).numpy())
        >>> vision.read(f"{folder.name}/gray.png").shape
        (2, 3, 3)
        >>> vision.read(f"{folder.name}/gray.png", "L")[..., 0].tolist()
        [[51, 51, 51], [51, 51, 51]]
        >>> folder.cleanup()
    """
    if mode not in MODES:
        raise ArgumentError(f"vision.read: mode must be one of {', '.join(MODES)}, not {mode!r}")
    limit = check_integer("vision.read", "max_pixels", max_pixels, 1)
    with _opened(path) as image:
        if strict:
            _check_suffix(path, image)
        _check_pixels(path, image, limit)
        if _format(image) == "PNG":
            _check_checksums(path)
        image.load()
        pixels = from_pillow(image, mode, background)
        orientation = _orientation(image) if orient else 1
    return np.ascontiguousarray(_oriented(pixels, orientation))


def write(path: PathLike, image: object, *, quality: int = 95) -> None:
    """Write an image to a file atomically: on an error, the old file stays as it is.

    Args:
        path: File; its suffix selects the format: .png, .jpg, .bmp, .gif, .tif, .webp, .ppm.
            Missing parent folders are created.
        image: Array (height, width, channels) with 1, 3 or 4 (RGBA) channels: uint8, floating-point
            numbers in [0, 1], or uint16 with 1 channel.
        quality: Quality of JPEG and WebP, 1 to 100. Default: 95.

    Raises:
        ArgumentError: If values are out of range, or the format cannot store the image.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(f"vision.write: {os.fspath(path)!r} must end in {', '.join(SUFFIXES)}")
    if check_integer("vision.write", "quality", quality, 1) > 100:
        raise ArgumentError(f"vision.write: quality must be at most 100, not {quality}")
    array = _storable(path, check_image("vision.write", image), SUFFIXES[suffix])
    content = io.BytesIO()
    try:
        to_pillow(array).save(content, SUFFIXES[suffix], quality=quality)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"vision.write: {os.fspath(path)!r} cannot store {array.shape[-1]} channels of "
            f"{array.dtype}: {error}"
        ) from None
    write_atomically(path, content.getvalue())


def _storable(path: PathLike, image: np.ndarray, kind: str) -> np.ndarray:
    """Return the image as uint8, or uint16 if it is, in a format that stores it exactly."""
    if image.dtype.kind == "f":
        low, high = float(image.min()), float(image.max())
        if not 0.0 <= low <= high <= 1.0:
            raise ArgumentError(
                f"vision.write: floating-point pixels for {os.fspath(path)!r} must be in [0, 1], "
                f"not from {low:.4g} to {high:.4g}"
            )
        image = np.rint(image * 255.0).astype(np.uint8)
    channels = (1,) if image.dtype == np.uint16 else (1, 3, 4)
    if image.shape[-1] not in channels:
        raise ArgumentError(
            f"vision.write: an image of {image.dtype} must have {' or '.join(map(str, channels))} "
            f"channels, not {image.shape[-1]}"
        )
    if image.dtype == np.uint16 and kind not in _LOSSLESS_16_BITS:
        raise ArgumentError(
            f"vision.write: {os.fspath(path)!r} cannot store 16 bits; use .png or .tif"
        )
    return image


@contextlib.contextmanager
def _opened(path: PathLike) -> Iterator[Any]:
    """Open an image file with Pillow; every failure to read it is a `DataFileError`."""
    pillow = import_optional("PIL.Image", "data.vision")
    try:
        with open_regular(path) as raw, io.BufferedReader(raw) as file:
            if not os.fstat(file.fileno()).st_size:
                raise DataFileError(f"{os.fspath(path)}: the file is empty (0 bytes)")
            with pillow.open(file, formats=tuple(set(SUFFIXES.values()))) as image:
                yield image
    except (DataFileError, ArgumentError, ArgumentTypeError):
        raise
    except pillow.UnidentifiedImageError:
        formats = ", ".join(sorted(set(SUFFIXES.values())))
        raise DataFileError(
            f"{os.fspath(path)}: not an image that can be read ({formats})"
        ) from None
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise DataFileError(f"{os.fspath(path)}: {str(error).rstrip('.')}") from None
    except Exception as error:  # decoders raise errors of many types on damaged files
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataFileError(f"{os.fspath(path)}: {reason}") from None


def _format(image: Any) -> str:
    return "JPEG" if image.format == "MPO" else str(image.format)  # a JPEG with several pictures


def _check_suffix(path: PathLike, image: Any) -> None:
    suffix = Path(path).suffix.lower()
    if SUFFIXES.get(suffix, _format(image)) != _format(image):
        raise DataFileError(
            f"{os.fspath(path)}: the content is {_format(image)}, but the name ends in {suffix}; "
            "rename the file, or pass strict=False"
        )


def _check_pixels(path: PathLike, image: Any, limit: int) -> None:
    if image.width * image.height > limit:
        raise DataFileError(
            f"{os.fspath(path)}: {image.width} x {image.height} pixels exceed the limit of "
            f"{limit}; if the file is trusted, pass a larger max_pixels"
        )


def _check_checksums(path: PathLike) -> None:
    """Raise an error if a checksum of a PNG file is wrong: decoding does not check the pixels'."""
    with _opened(path) as image:
        image.verify()


def _orientation(image: Any) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged metadata of an image that is complete
        return 1


def _oriented(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """Return the pixels upright, given the EXIF orientation of the stored ones."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels
