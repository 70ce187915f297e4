"""Datasets of image files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.class_folders import class_labels
from ember_ml.data.dataset import Dataset
from ember_ml.data.errors import check_index, check_integer
from ember_ml.data.files import PathLike
from ember_ml.data.manifest import labeled_files
from ember_ml.data.vision.files import MAX_PIXELS, SUFFIXES, read
from ember_ml.data.vision.pixels import MODES, Mode


class ImageFiles(Dataset):
    """Dataset of image files, in the given order.

    An example is `(image, label)`: uint8 (height, width, channels), and an integer. Without labels
    it is the image alone. Sizes may differ: resize with `dataset.map(vision.Resize(...))`.

    Args:
        paths: The files.
        labels: Label of each file. Default: none.
        mode: Kind of pixels, as in `vision.read`. Default: "RGB".
        strict: Whether a file whose content and suffix are of different formats is an error.
            Default: True.
        max_pixels: Largest number of pixels of a file, against decompression bombs. Default: 2**26.

    Raises:
        DataFileError: Reading an example raises it if its file is missing or damaged.
    """

    labels: np.ndarray | None

    def __init__(
        self,
        paths: Sequence[PathLike],
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        mode: Mode = "RGB",
        strict: bool = True,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        name = type(self).__name__
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise ArgumentTypeError(f"{name}: paths must be a sequence of paths, not {paths!r:.60}")
        if mode not in MODES:
            raise ArgumentError(f"{name}: mode must be one of {', '.join(MODES)}, not {mode!r}")
        self.paths = tuple(Path(path).absolute() for path in paths)
        self.labels = None
        if labels is not None:
            self.labels = np.array(
                [check_integer(name, "a label", label, 0) for label in labels], np.int64
            )
            if len(self.labels) != len(self.paths):
                raise ArgumentError(
                    f"{name}: there are {len(self.paths)} paths, but {len(self.labels)} labels"
                )
        self.mode = mode
        self.strict = strict
        self.max_pixels = check_integer(name, "max_pixels", max_pixels, 1)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> np.ndarray | tuple[np.ndarray, int]:
        index = check_index(type(self).__name__, index, len(self))
        image = read(self.paths[index], self.mode, strict=self.strict, max_pixels=self.max_pixels)
        return image if self.labels is None else (image, int(self.labels[index]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} files, mode={self.mode!r})"


class ImageFolder(ImageFiles):
    """Dataset of the image files in a folder: the image and the class of each.

    An example is `(image, label)`: uint8 (height, width, channels), and the index of its class in
    `classes`. Without labels in a manifest it is the image alone. Sizes may differ: resize with
    `dataset.map(vision.Resize(...))`.

    Args:
        root: Folder with one folder of image files for each class. Files may be nested deeper.
            Files are sorted by class and path. With a manifest, the folder that all its files are
            in.
        manifest: CSV file with a header, or JSON lines, with the columns "path", relative to
            `root`, and optionally "label". Default: the folders are the classes.
        mode: Kind of pixels, as in `vision.read`. Default: "RGB".
        strict: Whether a file whose content and suffix are of different formats is an error.
            Default: True.
        max_pixels: Largest number of pixels of a file, against decompression bombs. Default: 2**26.

    Raises:
        DataFileError: If there are no files, a link is broken, or a manifest is invalid or names a
            file outside the root.

    Example:
        >>> import tempfile
        >>> from ember_ml.data import vision
        >>> folder = tempfile.TemporaryDirectory()
        >>> for name in ("dark", "bright"):
        ...     gray = ops.full((4, 5, 1), 0.9 if name == "bright" else 0.1).numpy()
        ...     vision.write(f"{folder.name}/{name}/0.png", gray)
        >>> dataset = vision.ImageFolder(folder.name, mode="L")
        >>> dataset.classes, len(dataset)
        (('bright', 'dark'), 2)
        >>> image, label = dataset[1]
        >>> image.shape, label
        ((4, 5, 1), 1)
        >>> folder.cleanup()
    """

    def __init__(
        self,
        root: PathLike,
        manifest: PathLike | None = None,
        *,
        mode: Mode = "RGB",
        strict: bool = True,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self.root = Path(root).absolute()
        files = labeled_files("ImageFolder", self.root, manifest, tuple(SUFFIXES), "image")
        self.classes, labels = class_labels(files)
        paths = [file.path for file in files]
        super().__init__(paths, labels, mode=mode, strict=strict, max_pixels=max_pixels)

    def __repr__(self) -> str:
        return (
            f"ImageFolder({str(self.root)!r}: {len(self)} files, {len(self.classes)} classes, "
            f"mode={self.mode!r})"
        )
