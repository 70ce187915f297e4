"""Convolutions of images."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import InitializerField, OptionalActivationField, Size
from ember_ml.nn import activations, initializers
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.spatial.base import DataFormat, Extent, ImageLayer, PaddingField
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/conv2d")
class Conv2D(ImageLayer):
    r"""Convolution of images with learned filters and an optional activation.

    .. math:: y_{i,j} = \phi\Big(\sum_{k,l} W_{k,l} \, x_{s i + d k - p, \; s j + d l - p} + b\Big)

    Here s is the stride, d the dilation and p the padding.

    Args:
        in_features: Number of input features (channels).
        out_features: Number of output features: the number of filters.
        kernel_size: Height and width of the filters; one integer sets both.
        stride: Step between windows; one integer, or one for each axis. Default: 1.
        padding: Zeros on each side: "same" (output length: input length / stride, rounded up),
            "valid" (none), an integer, one for each axis, or (before, after) for each axis.
            Default: "same".
        dilation: Step between the elements of a window; one integer, or one for each axis.
            Default: 1.
        groups: Number of groups of features, each with its own filters. Must divide `in_features`
            and `out_features`; `groups=in_features` is a depthwise convolution. Default: 1.
        bias: Whether to add the bias b. Default: True.
        activation: The activation function phi, by name or as a function. Default: none.
        kernel_initializer: Initializer of W, which has the shape (out_features, in_features /
            groups, height, width) in either data format. Default: "he".
        bias_initializer: Initializer of b. Default: "zeros".
        data_format: "channels_last" or "channels_first". Default: "channels_last".

    Shape: (batch, height, width, in_features) -> (batch, new height, new width, out_features), or
        with the features second if `data_format="channels_first"`.

    Example:
        >>> conv = nn.layers.Conv2D(3, 8, kernel_size=3, stride=2, activation="relu")
        >>> conv(ops.ones((2, 32, 32, 3))).shape
        (2, 16, 16, 8)
    """

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        kernel_size: Extent,
        stride: Extent = 1,
        padding: PaddingField = "same",
        dilation: Extent = 1,
        groups: Size = 1,
        bias: bool = True,
        activation: OptionalActivationField = None,
        kernel_initializer: InitializerField = "he",
        bias_initializer: InitializerField = "zeros",
        data_format: DataFormat = "channels_last",
    ) -> None:
        require_divisible(self, in_features=in_features, groups=groups)
        require_divisible(self, out_features=out_features, groups=groups)
        self.in_features = in_features
        self.out_features = out_features
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.data_format = data_format
        window = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        kernel = initializers.get(kernel_initializer)
        self.weight = Parameter(kernel((out_features, in_features // groups, *window)))
        self.bias: Parameter | None = None
        if bias:
            initial_bias = initializers.get(bias_initializer)((out_features,))
            self.bias = Parameter(initial_bias, decay=False)
        self.activation = None if activation is None else activations.get(activation)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        try:
            y = ops.conv2d(
                x,
                self.weight,
                self.bias,
                self.stride,
                self.padding,
                self.dilation,
                self.groups,
                self.data_format,
            )
        except EmberError:
            self.check_image(x, self.in_features)
            raise
        return y if self.activation is None else self.activation(y)
