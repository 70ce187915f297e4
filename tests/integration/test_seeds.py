"""The usage examples that the library promises to run as written, on every backend."""

from __future__ import annotations

from typing import Optional

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import BACKENDS, selection
from ember_ml.nn import tensor


@pytest.fixture
def restored():
    before = (selection._chosen, selection._reason)
    yield
    selection._chosen, selection._reason = before


def test_operation_abstraction(backend):
    def process_data(x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        return ops.sin(x)

    np.testing.assert_allclose(process_data([0.5, 1.0]).numpy(), np.sin([0.5, 1.0]), rtol=1e-6)


def test_tensor_conversion(backend):
    def normalize_data(x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        return ops.divide(x, ops.cast(255.0, x.dtype))

    assert normalize_data([0.0, 127.5, 255.0]).tolist() == [0.0, 0.5, 1.0]


def test_feature_extraction(backend):
    class FeatureExtractor:
        def __init__(self, feature_dim: int):
            self.feature_dim = feature_dim

        def extract(
            self,
            input_data: tensor.Tensor,
            mask: Optional[tensor.Tensor] = None,  # noqa: UP045
        ) -> tensor.Tensor:
            x = tensor.convert_to_tensor(input_data)
            if mask is not None:
                mask = tensor.convert_to_tensor(mask)
                x = ops.multiply(x, mask)
            return x

    extractor = FeatureExtractor(2)
    assert extractor.extract([[1.0, 2.0]]).tolist() == [[1.0, 2.0]]
    assert extractor.extract([[1.0, 2.0]], mask=[[True, False]]).tolist() == [[1.0, 0.0]]


def wave(length: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(length).astype(np.float32)


def test_wave_processing(backend):
    def process_wave(x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        window = ops.hann_window(1024)
        frames = ops.frame(x, frame_length=1024, hop_length=512)
        return ops.stft(ops.multiply(frames, window))

    x = wave(4096)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    want = np.fft.rfft(
        np.stack([x[start : start + 1024] for start in range(0, 3073, 512)]) * window
    )
    np.testing.assert_allclose(process_wave(x).numpy(), want, atol=2e-4)


def test_waveform(backend):
    def process_waveform(x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        window = ops.hann_window(1024)
        return ops.stft(ops.multiply(x, window))

    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    np.testing.assert_allclose(
        process_waveform(wave(1024)).numpy(), np.fft.rfft(wave(1024) * window), atol=2e-4
    )


def test_scatter_mean(backend):
    def scatter_mean(values, indices, dim_size=None):
        values = tensor.convert_to_tensor(values)
        indices = tensor.convert_to_tensor(indices)
        sum_result = ops.scatter(values, indices, dim_size, "add")
        ones = ops.ones_like(values)
        count = ops.scatter(ones, indices, dim_size, "add")
        count = ops.where(count == 0, ops.ones_like(count), count)
        return ops.divide(sum_result, count)

    assert scatter_mean([1.0, 2.0, 6.0], [0, 2, 2]).tolist() == [1.0, 0.0, 4.0]
    assert scatter_mean([1.0, 2.0, 6.0], [0, 2, 2], 4).tolist() == [1.0, 0.0, 4.0, 0.0]


def test_scatter_example(backend):
    def scatter_example(data: tensor.Tensor, indices: tensor.Tensor) -> tensor.Tensor:
        data = tensor.convert_to_tensor(data)
        indices = tensor.convert_to_tensor(indices)
        return ops.scatter(data, indices, aggr="add")

    assert scatter_example([1.0, 2.0, 3.0], [1, 0, 1]).tolist() == [2.0, 4.0]


def test_specialized_processor(backend):
    class SpecializedProcessor:
        def __init__(self, role: str = "default"):
            self.role = role

        def process(self, x: tensor.Tensor) -> tensor.Tensor:
            x = tensor.convert_to_tensor(x)
            if self.role == "memory":
                return ops.multiply(x, 0.95)
            if self.role == "inhibition":
                return ops.multiply(x, -0.5)
            return x

    assert SpecializedProcessor("memory").process([2.0]).numpy() == pytest.approx([1.9])
    assert SpecializedProcessor("inhibition").process([2.0]).tolist() == [-1.0]
    assert SpecializedProcessor().process([2.0]).tolist() == [2.0]


def test_backend_equivalence(restored):
    x = tensor.ones((10,))
    results = []
    with pytest.warns(ember_ml.BackendTransferWarning):  # noqa: PT031
        for backend in BACKENDS:
            ops.set_backend(backend)
            result = ops.scatter(x, tensor.array([0, 1, 0]))
            assert result.backend == backend
            results.append(result.tolist())
    assert results == [[2.0, 1.0]] * len(BACKENDS)


def test_scatter_edge_cases(backend):
    empty = tensor.array([])
    indices = tensor.array([], dtype=tensor.int32)
    assert ops.scatter(empty, indices).shape == (0,)
    large = tensor.ones((10000,))
    sparse_indices = tensor.array([0, 9999])
    result = ops.scatter(large, sparse_indices)
    assert result.shape == (10000,)
    assert ops.sum(result).item() == 2.0
    with pytest.raises(ValueError, match="scatter"):
        ops.scatter(tensor.ones((2,)), tensor.array([0, 1, 2]))


def test_type_safety(backend):
    x = tensor.ones((10,), dtype=tensor.float32)
    y = tensor.ones((10,), dtype=tensor.float16)
    with pytest.raises(TypeError):
        ops.matmul(x, y)


def test_time_series_features(backend):
    from ember_ml.features import base

    class TimeSeriesFeatures(base.FeatureExtractor):
        """Extract features from time series data."""

        def extract(self, data: tensor.Tensor) -> tensor.Tensor:
            x = tensor.convert_to_tensor(data)
            # Use ops for all computations
            mean = ops.reduce_mean(x, axis=1, keepdims=True)
            std = ops.reduce_std(x, axis=1, keepdims=True)
            return ops.divide(ops.subtract(x, mean), std)

    data = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    want = np.array([[-1.0, 0.0, 1.0]] * 2) / np.std([0.0, 1.0, 2.0])
    extractor = TimeSeriesFeatures()
    for use in (extractor.extract, extractor, extractor.transform, extractor.fit_transform):
        np.testing.assert_allclose(use(data).numpy(), want, rtol=1e-6)


def test_feature_factories(backend):
    from ember_ml.nn import features

    data = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    instance = features.pca()
    instance.fit(data)
    np.testing.assert_allclose(
        instance.explained_variance.numpy().sum(), data.var(0, ddof=1).sum(), rtol=1e-5
    )
    scaled = features.standardize_features().fit_transform(data).numpy()
    np.testing.assert_allclose(scaled, (data - data.mean(0)) / data.std(0), atol=1e-5)
    scaled = features.normalize_features().fit_transform(data).numpy()
    want = (data - data.min(0)) / (data.max(0) - data.min(0))
    np.testing.assert_allclose(scaled, want, atol=1e-6)
    assert features.one_hot([0, 2]).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert features.scatter([1.0, 2.0, 3.0], [0, 1, 0]).tolist() == [4.0, 2.0]


def test_data_parallel_split(backend):
    batch = tensor.convert_to_tensor(np.arange(8.0, dtype=np.float32).reshape(4, 2))
    parts = ops.split(batch, 2)
    assert [part.tolist() for part in parts] == [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]


STATS = [
    "mean",
    "var",
    "median",
    "std",
    "percentile",
    "max",
    "min",
    "sum",
    "cumsum",
    "argmax",
    "sort",
    "argsort",
    "gaussian",
]
LINEARALG = [
    "solve",
    "inv",
    "svd",
    "eig",
    "eigvals",
    "det",
    "norm",
    "qr",
    "cholesky",
    "lstsq",
    "diag",
    "diagonal",
]
MASTER = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "matmul",
    "dot",
    "mean",
    "sum",
    "max",
    "min",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "to_device",
    "get_device",
    "get_available_devices",
    "relu",
    "sigmoid",
    "tanh",
    "softmax",
    "softplus",
    "one_hot",
    "scatter",
]
TENSOR = [
    "zeros",
    "ones",
    "eye",
    "arange",
    "linspace",
    "zeros_like",
    "ones_like",
    "full",
    "full_like",
    "reshape",
    "transpose",
    "concatenate",
    "stack",
    "split",
    "convert_to_tensor",
    "array",
    "EmberTensor",
    "EmberDType",
    "DType",
    "dtype",
    "get_dtype",
    "to_dtype_str",
    "from_dtype_str",
]


def test_every_listed_name_is_there():
    for namespace, names in (
        (ops.stats, STATS),
        (ops.linearalg, LINEARALG),
        (ops, MASTER),
        (tensor, TENSOR),
    ):
        for name in names:
            assert callable(getattr(namespace, name)), name


def test_backend_management(restored):
    name, _device = ember_ml.auto_select_backend()
    ember_ml.set_backend(name)
    assert ember_ml.get_backend() == name
    assert ember_ml.backend.get_backend_module().__name__.endswith(name)
    for choice in BACKENDS:
        ember_ml.set_backend(choice)
        assert tensor.ones((1,)).backend == choice


def test_tensor_module_imports():
    from ember_ml.nn.tensor.common import EmberTensor, zeros
    from ember_ml.nn.tensor.common.dtypes import EmberDType, from_dtype_str, to_dtype_str
    from ember_ml.nn.tensor.interfaces import TensorInterface
    from ember_ml.nn.tensor.interfaces.dtype import DTypeInterface

    assert isinstance(zeros((2,)), EmberTensor)
    assert isinstance(zeros((2,)), TensorInterface)
    assert isinstance(from_dtype_str("float32"), EmberDType)
    assert isinstance(from_dtype_str("float32"), DTypeInterface)
    assert to_dtype_str(np.float32) == "float32"
