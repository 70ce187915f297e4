"""Pooling of images."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.spatial.base import (
    DataFormat,
    Extent,
    ImageLayer,
    OptionalExtent,
    PaddingField,
)
from ember_ml.registry import register


@register("layers/max_pool2d")
class MaxPool2D(ImageLayer):
    """Maximum of each window of an image, for each feature.

    Args:
        kernel_size: Height and width of the window; one integer sets both. Default: 2.
        stride: Step between windows; one integer, or one for each axis. Default: `kernel_size`.
        padding: Elements (-inf) on each side, at most half of the window: "same", "valid" (none),
            an integer, one for each axis, or (before, after) for each axis. Default: "valid".
        dilation: Step between the elements of a window; one integer, or one for each axis.
            Default: 1.
        ceil_mode: Whether a last window may extend beyond the end. Default: False.
        data_format: "channels_last" or "channels_first". Default: "channels_last".

    Shape: (batch, height, width, features) -> (batch, new height, new width, features), or with
        the features second if `data_format="channels_first"`.

    Example:
        >>> nn.layers.MaxPool2D(2)(ops.ones((2, 9, 8, 3))).shape
        (2, 4, 4, 3)
    """

    def __init__(
        self,
        kernel_size: Extent = 2,
        stride: OptionalExtent = None,
        padding: PaddingField = "valid",
        dilation: Extent = 1,
        ceil_mode: bool = False,
        data_format: DataFormat = "channels_last",
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode
        self.data_format = data_format

    def forward(self, x: Tensor) -> Tensor:
        """Return the maxima."""
        self.check_image(x)
        return ops.max_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.data_format,
        )


@register("layers/avg_pool2d")
class AvgPool2D(ImageLayer):
    """Mean of each window of an image, for each feature.

    Args:
        kernel_size: Height and width of the window; one integer sets both. Default: 2.
        stride: Step between windows; one integer, or one for each axis. Default: `kernel_size`.
        padding: Zeros on each side, at most half of the window: "same", "valid" (none), an
            integer, one for each axis, or (before, after) for each axis. Default: "valid".
        ceil_mode: Whether a last window may extend beyond the end. Default: False.
        count_include_pad: Whether the padding counts as elements of a window. Default: True.
        data_format: "channels_last" or "channels_first". Default: "channels_last".

    Shape: (batch, height, width, features) -> (batch, new height, new width, features), or with
        the features second if `data_format="channels_first"`.

    Example:
        >>> nn.layers.AvgPool2D(3, stride=2, padding="same")(ops.ones((2, 9, 8, 3))).shape
        (2, 5, 4, 3)
    """

    def __init__(
        self,
        kernel_size: Extent = 2,
        stride: OptionalExtent = None,
        padding: PaddingField = "valid",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        data_format: DataFormat = "channels_last",
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.data_format = data_format

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        self.check_image(x)
        return ops.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.data_format,
        )


@register("layers/global_average_pool2d")
class GlobalAveragePool2D(ImageLayer):
    """Mean of each feature over all positions of an image.

    Args:
        keepdims: Whether to keep height and width with length 1. Default: False.
        data_format: "channels_last" or "channels_first". Default: "channels_last".

    Shape: (batch, height, width, features) -> (batch, features), or with the features second if
        `data_format="channels_first"`.

    Example:
        >>> nn.layers.GlobalAveragePool2D()(ops.ones((2, 9, 8, 3))).shape
        (2, 3)
    """

    def __init__(self, keepdims: bool = False, data_format: DataFormat = "channels_last") -> None:
        self.keepdims = keepdims
        self.data_format = data_format

    def forward(self, x: Tensor) -> Tensor:
        """Return the means."""
        self.check_image(x)
        return ops.global_avg_pool(x, self.keepdims, self.data_format)
