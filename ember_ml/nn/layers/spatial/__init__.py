"""Layers that mix the positions of images."""

from ember_ml.nn.layers.spatial.base import ImageLayer
from ember_ml.nn.layers.spatial.convolution import Conv2D
from ember_ml.nn.layers.spatial.pooling import AvgPool2D, GlobalAveragePool2D, MaxPool2D

__all__ = ["AvgPool2D", "Conv2D", "GlobalAveragePool2D", "ImageLayer", "MaxPool2D"]
