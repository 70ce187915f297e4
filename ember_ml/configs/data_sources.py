"""Data of training runs in folders and tables: audio, images and time series."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Component, Positive, Size

FeatureField = Annotated[Any, Component("features", optional=True)]
"""A feature extractor that needs no fit, or None."""


class AudioFields(Config):
    """Folder of audio files with one folder for each class."""

    path: str
    manifest: str | None = None
    """CSV or JSONL file with the columns "path" and "label", instead of class folders."""
    sample_rate: Size | None = None
    """Sample rate in Hz to convert all files to. Default: that of the first file."""
    duration: Positive | None = None
    """Seconds to crop or pad all recordings to. Default: all have the same length."""
    features: FeatureField = None
    """Features of the samples, such as {type: mfcc, sample_rate: 8000}. Default: the samples."""


class ImageFields(Config):
    """Folder of image files with one folder for each class."""

    path: str
    manifest: str | None = None
    """CSV or JSONL file with the columns "path" and "label", instead of class folders."""
    size: Size | tuple[Size, Size] | None = None
    """Height and width of the images, or both in one number. Default: all have the same size."""
    mode: Literal["RGB", "L"] = "RGB"
    """Color or grayscale."""
    features: FeatureField = None
    """Features of the pixels, which are between 0 and 1. Default: the pixels."""


def _as_columns(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class TableFields(Config):
    """CSV, Parquet or .npz file of rows or of a time series."""

    path: str
    inputs: Annotated[tuple[str, ...] | None, BeforeValidator(_as_columns)] = None
    """Columns of the inputs. Default: all but the target. One column of strings is text."""
    target: str | None = None
    """Column of the target; strings are classes. Default: with a window, the inputs are forecast.
    """
    window: Size | None = None
    """Number of rows of an example of a time series. Default: each row is an example."""
    horizon: Size = 1
    """Number of rows from the end of a window to its target."""
    stride: Size = 1
    """Number of rows between two windows."""
    features: FeatureField = None
    """Features of the inputs. Default: the inputs."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.window is None and (self.horizon, self.stride) != (1, 1):
            raise ValueError("window: is missing; horizon and stride are for windows")
        return self
