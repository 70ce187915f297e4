"""Image files: modes, orientation, atomic writes, damaged and hostile files."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml.data import DataFileError, vision
from ember_ml.data.vision.files import SUFFIXES

from .pictures import gradient, photo

LOSSLESS = [".png", ".bmp", ".tif", ".ppm"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_written_files_are_what_pillow_reads(tmp_path: Path, suffix: str) -> None:
    image = photo()
    path = tmp_path / "new" / f"x{suffix}"
    vision.write(path, image)
    with Image.open(path) as opened:
        expected = np.asarray(opened.convert("RGB"))
        assert vision.info(path) == (60, 80, opened.mode, SUFFIXES[suffix])
    got = vision.read(path)
    assert got.dtype == np.uint8
    assert got.flags["C_CONTIGUOUS"]
    np.testing.assert_array_equal(got, expected)
    if suffix in LOSSLESS:
        np.testing.assert_array_equal(got, image)


def test_modes_of_the_result(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    vision.write(path, photo())
    with Image.open(path) as opened:
        for mode, channels in (("RGB", 3), ("RGBA", 4), ("L", 1)):
            expected = np.asarray(opened.convert(mode)).reshape(60, 80, channels)
            np.testing.assert_array_equal(vision.read(path, mode), expected)
    with pytest.raises(ArgumentError, match=r"mode must be one of RGB, .*, not 'HSV'"):
        vision.read(path, "HSV")


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_16_bits(tmp_path: Path, suffix: str) -> None:
    values = np.array([[0, 1, 128, 129, 257, 30000, 65534, 65535]], np.uint16)[..., None]
    path = tmp_path / f"x{suffix}"
    if suffix == ".pgm":
        path.write_bytes(b"P5 8 1 65535\n" + values.astype(">u2").tobytes())
    else:
        vision.write(path, values)
    np.testing.assert_array_equal(vision.read(path, "I;16"), values)
    gray = np.rint(values / 257).astype(np.uint8)  # of [0, 65535] onto [0, 255]
    color = np.tile(gray, 3)
    np.testing.assert_array_equal(vision.read(path, "L"), gray)
    np.testing.assert_array_equal(vision.read(path), color)
    opaque = np.concatenate([color, np.full_like(gray, 255)], axis=-1)
    np.testing.assert_array_equal(vision.read(path, "RGBA"), opaque)
    vision.write(tmp_path / "8.png", gray)
    wide = vision.read(tmp_path / "8.png", "I;16")
    np.testing.assert_array_equal(wide, gray.astype(np.uint16) * 257)


def test_32_bit_pixels_have_no_range(tmp_path: Path) -> None:
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "x.tif")
    with pytest.raises(DataFileError, match=r"x\.tif: 32-bit pixels \(mode F\)"):
        vision.read(tmp_path / "x.tif")


def test_palettes(tmp_path: Path) -> None:
    indices = np.array([[0, 1], [2, 1]], np.uint8)
    image = Image.fromarray(indices)
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    assert image.mode == "P"
    image.save(tmp_path / "x.png")
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png"), colors[indices])
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png", "P")[..., 0], indices)
    image.save(tmp_path / "clear.png", transparency=1)
    colors[1] = 255  # transparent: the background is white
    np.testing.assert_array_equal(vision.read(tmp_path / "clear.png"), colors[indices])
    alpha = vision.read(tmp_path / "clear.png", "RGBA")[..., 3]
    np.testing.assert_array_equal(alpha, np.where(indices == 1, 0, 255))
    vision.write(tmp_path / "color.png", photo())
    with pytest.raises(DataFileError, match=r"color\.png: the image has no palette"):
        vision.read(tmp_path / "color.png", "P")


@pytest.mark.parametrize("channels", [2, 4])
def test_transparent_pixels_show_the_background(tmp_path: Path, channels: int) -> None:
    image = photo(4, 8)
    color = image if channels == 4 else image[..., :1]
    alpha = np.linspace(0, 255, 32).astype(np.uint8).reshape(4, 8, 1)
    Image.fromarray(np.concatenate([color, alpha], axis=-1)).save(tmp_path / "x.png")
    weight = alpha / 255.0
    for background in ((255, 255, 255), (10, 20, 30)):
        expected = color * weight + np.array(background) * (1 - weight)
        got = vision.read(tmp_path / "x.png", background=background)
        np.testing.assert_allclose(got, expected, atol=1.01)
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png", "RGBA")[..., 3:], alpha)


def test_cmyk_and_one_bit(tmp_path: Path) -> None:
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # magenta and yellow
    red.save(tmp_path / "x.jpg", quality=100)
    np.testing.assert_allclose(vision.read(tmp_path / "x.jpg"), [[[255, 0, 0]] * 8] * 8, atol=3)
    bits = np.eye(5, dtype=bool)
    Image.fromarray(bits).save(tmp_path / "x.png")
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png", "L")[..., 0], bits * 255)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_exif_orientation(tmp_path: Path, orientation: int, suffix: str) -> None:
    image = Image.fromarray(photo(20, 32))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"x{suffix}"
    image.save(path, exif=exif)
    with Image.open(path) as opened:
        upright = np.asarray(ImageOps.exif_transpose(opened))
        stored = np.asarray(opened)
    np.testing.assert_array_equal(vision.read(path), upright)
    np.testing.assert_array_equal(vision.read(path, orient=False), stored)


def test_the_first_frame_of_an_animation(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.full((4, 4), value, np.uint8)) for value in (10, 200)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
    assert vision.read(tmp_path / "x.gif").min() == vision.read(tmp_path / "x.gif").max() == 10


def test_floats_are_written_as_bytes(tmp_path: Path) -> None:
    image = np.linspace(0, 1, 30, dtype=np.float32).reshape(5, 6, 1)
    vision.write(tmp_path / "x.png", image)
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png", "L"), np.rint(image * 255))
    with pytest.raises(ArgumentError, match=r"x\.png.* must be in \[0, 1\], not from 0 to 2"):
        vision.write(tmp_path / "x.png", image * 2)
    with pytest.raises(ArgumentError, match=r"must be in \[0, 1\], not from nan"):
        vision.write(tmp_path / "x.png", image * np.nan)


@pytest.mark.parametrize(
    ("name", "image", "error", "message"),
    [
        ("x.png", [[1]], ArgumentTypeError, "an image must be a NumPy array .* not list"),
        ("x.png", gradient()[..., 0], ShapeError, r"\(6, 8\); add an axis with image\[..., None\]"),
        ("x.png", gradient().astype(np.int64), ArgumentTypeError, "uint8, uint16 .* not int64"),
        ("x.png", gradient(channels=2), ArgumentError, "1 or 3 or 4 channels, not 2"),
        ("x.jpg", gradient(channels=4), ArgumentError, r"x\.jpg' cannot store 4 channels of uint8"),
        ("x.jpg", np.zeros((2, 2, 1), np.uint16), ArgumentError, "cannot store 16 bits"),
        ("x.exe", gradient(), ArgumentError, r"x\.exe' must end in \.png"),
    ],
)
def test_what_cannot_be_written(
    tmp_path: Path, name: str, image: object, error: type[Exception], message: str
) -> None:
    (tmp_path / name).write_text("before")
    with pytest.raises(error, match=f"vision.write: .*{message}"):
        vision.write(tmp_path / name, image)
    assert (tmp_path / name).read_text() == "before"
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".bmp", ".gif", ".tif", ".webp", ".ppm"])
def test_no_truncation_is_silent(tmp_path: Path, suffix: str) -> None:
    """Every prefix of a file is an error that names it, or has all of the pixels."""
    whole = tmp_path / f"whole{suffix}"
    vision.write(whole, photo(9, 12))
    expected, content = vision.read(whole), whole.read_bytes()
    part = tmp_path / f"part{suffix}"
    errors = []
    for length in {*range(40), *range(40, len(content), 7), len(content) // 2}:
        part.write_bytes(content[:length])
        try:
            np.testing.assert_array_equal(vision.read(part), expected)
        except DataFileError as error:
            errors.append(str(error))
    assert len(errors) > 40
    assert all(error.startswith(f"{part}: ") for error in errors)


def test_a_damaged_png_is_found_by_its_checksums(tmp_path: Path) -> None:
    vision.write(tmp_path / "x.png", photo(9, 12))
    content = (tmp_path / "x.png").read_bytes()
    for place in range(40, len(content) - 12, 5):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        (tmp_path / "x.png").write_bytes(damaged)
        with pytest.raises(DataFileError, match=r"x\.png: "):
            vision.read(tmp_path / "x.png")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.png", b"", r"the file is empty \(0 bytes\)"),
        ("x.png", b"not an image at all", "not an image that can be read"),
        ("x.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image that can"),
    ],
)
def test_files_that_are_no_images(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    for function in (vision.read, vision.info):
        with pytest.raises(DataFileError, match=rf"{name}: {reason}"):
            function(tmp_path / name)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.png: No such file"):
        vision.read(tmp_path / "gone.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(DataFileError, match=r"folder\.png: "):
        vision.read(tmp_path / "folder.png")
    (tmp_path / "loop.png").symlink_to("loop.png")
    with pytest.raises(DataFileError, match=r"loop\.png: Too many levels of symbolic links"):
        vision.read(tmp_path / "loop.png")
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataFileError, match=r"pipe\.png: is not a regular file"):
        vision.read(tmp_path / "pipe.png")


def test_a_gif_named_png(tmp_path: Path) -> None:
    vision.write(tmp_path / "x.gif", photo())
    expected = vision.read(tmp_path / "x.gif")
    (tmp_path / "x.gif").rename(tmp_path / "x.png")
    with pytest.raises(DataFileError, match=r"x\.png: the content is GIF, but the name ends in"):
        vision.read(tmp_path / "x.png")
    np.testing.assert_array_equal(vision.read(tmp_path / "x.png", strict=False), expected)
    (tmp_path / "x.png").rename(tmp_path / "x")
    np.testing.assert_array_equal(vision.read(tmp_path / "x"), expected)


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG file that declares many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(100_000)))
    return b"\x89PNG\r\n\x1a\n" + head + pixels + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8193, 12_000, 60_000])
def test_decompression_bombs(tmp_path: Path, side: int) -> None:
    (tmp_path / "x.png").write_bytes(bomb(side, side))
    with pytest.raises(DataFileError, match=r"x\.png: .*pixels.* exceeds? "):
        vision.read(tmp_path / "x.png")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_below_the_limit_of_pillow(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(bomb(12_000, 12_000))
    with pytest.raises(DataFileError, match=r"12000 x 12000 pixels exceed the limit of 67108864"):
        vision.read(tmp_path / "x.png")


def test_the_limit_of_pixels_can_be_set(tmp_path: Path) -> None:
    vision.write(tmp_path / "x.png", photo())
    with pytest.raises(DataFileError, match=r"x\.png: 80 x 60 pixels exceed the limit of 4799"):
        vision.read(tmp_path / "x.png", max_pixels=4799)
    assert vision.read(tmp_path / "x.png", max_pixels=4800).shape == (60, 80, 3)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data:UserWarning")
def test_damaged_metadata_does_not_hide_the_image(tmp_path: Path) -> None:
    content = io.BytesIO()
    Image.fromarray(photo()).save(content, "JPEG", exif=b"Exif\0\0MM\0\x2a\0\0\xff\xff")
    (tmp_path / "x.jpg").write_bytes(content.getvalue())
    assert vision.read(tmp_path / "x.jpg").shape == (60, 80, 3)


def test_pillow_is_imported_when_it_is_used() -> None:
    code = "import sys; from ember_ml.data import vision; vision.Resize(3); assert 'PIL' not in"
    subprocess.run([sys.executable, "-c", f"{code} sys.modules"], check=True, timeout=60)
