"""Convolution and pooling layers: against torch.nn, in both data formats, in a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import ember_ml as ember
from ember_ml import autodiff, nn, ops
from ember_ml.backend import use_backend
from ember_ml.configs import Config
from ember_ml.configs.errors import ConfigError
from ember_ml.nn import layers
from ember_ml.nn.flops import count_flops
from ember_ml.nn.tensor import array
from ember_ml.training import Trainer
from tests.backends import other_than

CONVOLUTIONS = [
    ({"kernel_size": 3, "padding": "valid"}, {"kernel_size": 3}),
    ({"kernel_size": (3, 5)}, {"kernel_size": (3, 5), "padding": "same"}),
    ({"kernel_size": 3, "stride": (2, 1), "padding": 1},) * 2,
    ({"kernel_size": 2, "stride": 2, "padding": (0, 1), "bias": False},) * 2,
    ({"kernel_size": 3, "dilation": (2, 1), "groups": 2, "padding": 2},) * 2,
    ({"kernel_size": 3, "groups": 4}, {"kernel_size": 3, "groups": 4, "padding": "same"}),
    ({"kernel_size": 1, "padding": ((0, 0), (0, 0))}, {"kernel_size": 1}),
]
"""Options of `Conv2D`, and those of `torch.nn.Conv2d` that mean the same."""
POOLS = [
    (layers.MaxPool2D, torch.nn.MaxPool2d, {"kernel_size": 2}),
    (layers.MaxPool2D, torch.nn.MaxPool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (layers.MaxPool2D, torch.nn.MaxPool2d, {"kernel_size": (2, 3), "stride": (1, 2)}),
    (layers.MaxPool2D, torch.nn.MaxPool2d, {"kernel_size": 2, "dilation": 3, "stride": 1}),
    (layers.MaxPool2D, torch.nn.MaxPool2d, {"kernel_size": 2, "ceil_mode": True}),
    (layers.AvgPool2D, torch.nn.AvgPool2d, {"kernel_size": 2}),
    (layers.AvgPool2D, torch.nn.AvgPool2d, {"kernel_size": 3, "stride": 2, "padding": 1}),
    (
        layers.AvgPool2D,
        torch.nn.AvgPool2d,
        {"kernel_size": 3, "padding": (1, 0), "count_include_pad": False, "ceil_mode": True},
    ),
]
FORMATS = pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])


def images(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def to_first(x: np.ndarray, data_format: str) -> np.ndarray:
    return np.moveaxis(x, -1, 1) if data_format == "channels_last" else x


def compare(layer: nn.Module, reference: torch.nn.Module, data_format: str) -> None:
    """Check outputs and the gradients of input and parameters."""
    x = images(2, 4, 9, 8)
    inputs = torch.tensor(x, requires_grad=True)
    expected = reference(inputs)
    weights = images(*expected.shape, seed=1)
    (expected * torch.tensor(weights)).sum().backward()
    last = data_format == "channels_last"
    own = array(np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x)
    scale = array(np.ascontiguousarray(np.moveaxis(weights, 1, -1)) if last else weights)
    out = layer(own)
    assert np.allclose(to_first(out.numpy(), data_format), expected.detach(), atol=2e-5)
    grad = autodiff.grad(lambda x: (layer(x) * scale).sum())(own)
    assert np.allclose(to_first(grad.numpy(), data_format), inputs.grad, atol=2e-5)
    if layer.parameters():
        _, grads = nn.value_and_grad(layer, lambda: (layer(own) * scale).sum())()
        for name, parameter in reference.named_parameters():
            assert np.allclose(grads[name].numpy(), parameter.grad, rtol=1e-4, atol=1e-4), name


@FORMATS
@pytest.mark.parametrize(("options", "expected"), CONVOLUTIONS)
def test_conv2d_equals_torch(
    options: dict[str, Any], expected: dict[str, Any], data_format: str, backend: str
) -> None:
    layer = layers.Conv2D(4, 8, **options, data_format=data_format)
    reference = torch.nn.Conv2d(4, 8, **expected)
    layer.load_state_dict({k: v.numpy() for k, v in reference.state_dict().items()})
    compare(layer, reference, data_format)


@FORMATS
@pytest.mark.parametrize(("cls", "reference", "options"), POOLS)
def test_pooling_equals_torch(
    cls: type, reference: type, options: dict[str, Any], data_format: str, backend: str
) -> None:
    compare(cls(**options, data_format=data_format), reference(**options), data_format)


@FORMATS
def test_global_average_pool_equals_torch(data_format: str, backend: str) -> None:
    reference = torch.nn.AdaptiveAvgPool2d(1)
    flat = torch.nn.Sequential(reference, torch.nn.Flatten())
    compare(layers.GlobalAveragePool2D(data_format=data_format), flat, data_format)
    kept = layers.GlobalAveragePool2D(keepdims=True, data_format=data_format)
    compare(kept, reference, data_format)


@pytest.mark.parametrize("length", [1, 5, 8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_divides_the_length_by_the_stride(length: int, stride: int) -> None:
    x = ops.ones((1, length, length + 3, 2))
    expected = (1, -(-length // stride), -(-(length + 3) // stride))
    for kernel_size in (1, 2, 3):
        conv = layers.Conv2D(2, 3, kernel_size, stride)
        assert conv(x).shape == (*expected, 3)
        if kernel_size >= stride:
            for cls in (layers.MaxPool2D, layers.AvgPool2D):
                pool = cls(kernel_size, stride, "same")
                assert pool(x).shape == (*expected, 2)


def test_an_activation_and_an_empty_batch(backend: str) -> None:
    conv = layers.Conv2D(4, 8, 3, activation="relu")
    x = array(images(2, 5, 5, 4))
    linear = ops.conv2d(x, conv.weight, conv.bias, padding="same", data_format="channels_last")
    assert ops.allclose(conv(x), ops.relu(linear))
    assert conv(ops.ones((0, 5, 5, 4))).shape == (0, 5, 5, 8)


def test_flops_are_those_of_torch() -> None:
    with use_backend("torch"):
        conv = layers.Conv2D(4, 8, 3, stride=2, groups=2, bias=False)
        x = ops.ones((2, 9, 9, 4))
        with FlopCounterMode(display=False) as counter:
            conv(x)
        assert count_flops(conv, x) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 0}, "kernel_size: must be an integer of at least 1"),
        ({"kernel_size": (3, 3, 3)}, "kernel_size: must be an integer of at least 1, or one for"),
        ({"kernel_size": 2.5}, "kernel_size: must be an integer"),
        ({"kernel_size": True}, "kernel_size: must be an integer"),
        ({"kernel_size": 3, "padding": "full"}, "padding: must be 'same', 'valid'"),
        ({"kernel_size": 3, "padding": -1}, "padding: must be 'same', 'valid'"),
        ({"kernel_size": 3, "padding": ((1, 2),)}, "padding: must be 'same', 'valid'"),
        ({"kernel_size": 3, "data_format": "nhwc"}, "data_format: should be 'channels_last'"),
    ],
)
def test_bad_options_name_the_field(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"Conv2D: {message}"):
        layers.Conv2D(4, 8, **options)


def test_groups_must_divide_the_features() -> None:
    for features in [(4, 6), (6, 4)]:
        with pytest.raises(ValueError, match=r"Conv2D: \w+_features \(4\) must be divisible by"):
            layers.Conv2D(*features, 3, groups=3)


@pytest.mark.parametrize("shape", [(9, 9, 4), (2, 9, 9, 3), (2, 4), (2, 4, 9, 9)])
def test_inputs_that_are_not_images_name_the_layer(shape: tuple[int, ...], backend: str) -> None:
    expected = r"expected images of shape \(batch, height, width, 4\) \(channels_last\)"
    with pytest.raises(ValueError, match=rf"Conv2D: {expected}, got"):
        layers.Conv2D(4, 8, 3)(ops.ones(shape))
    first = layers.MaxPool2D(2, data_format="channels_first")
    with pytest.raises(ValueError, match=r"MaxPool2D: .*\(batch, features, height, width\)"):
        first(ops.ones(shape[:2]))


def classifier() -> nn.Sequential:
    return nn.Sequential(
        layers.Conv2D(1, 8, 3, activation="relu"),
        layers.BatchNorm(8),
        layers.MaxPool2D(2),
        layers.Conv2D(8, 16, 3, activation="relu"),
        layers.GlobalAveragePool2D(),
        layers.Dense(16, 2),
    )


def stripes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy images of horizontal (0) and vertical (1) stripes at random phases."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, count)
    wave = np.sin(np.pi * (np.arange(8) + rng.integers(0, 8, (count, 1))) / 2)
    x = np.where(y[:, None, None] == 1, wave[:, None, :], wave[:, :, None])
    x = np.broadcast_to(x, (count, 8, 8)) + 0.1 * rng.standard_normal((count, 8, 8))
    return x[..., None].astype(np.float32), y


def test_a_classifier_learns_and_moves_to_another_backend(backend: str, tmp_path) -> None:
    ops.random.set_seed(0)
    model = classifier()
    data = stripes(64)
    trainer = Trainer(
        model,
        "cross_entropy",
        optimizer={"type": "adam", "learning_rate": 1e-2},
        metrics=["accuracy"],
        progress=False,
        compile=False,
    )
    history = trainer.fit(data, data, epochs=6, batch_size=16)
    assert history.epochs[-1]["val_accuracy"] > 0.95
    ember.save(model, tmp_path / "model")
    expected = model.eval()(array(data[0][:4])).numpy()
    twin = Config.from_yaml(model.config.to_yaml()).create()
    assert repr(twin) == repr(model)
    with use_backend(other_than(backend)):
        loaded = ember.load(tmp_path / "model").eval()
        assert np.allclose(loaded(array(data[0][:4])).numpy(), expected, atol=1e-4)
