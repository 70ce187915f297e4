"""The base class of feature extractors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor, first_element, is_framework_array
from ember_ml._core.dtype import PYTHON_TYPES, float32
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.configs.fields import Size
from ember_ml.nn import _traversal
from ember_ml.nn._inputs import as_tensors
from ember_ml.nn.module import Module
from ember_ml.registry import register

ROWS_PER_BATCH = 4096
"""Number of examples that `fit` reads from a dataset at once."""


class NotFittedError(EmberError, RuntimeError):
    """Raised when a feature extractor is used before `fit`."""


@runtime_checkable
class BatchSource(Protocol):
    """Dataset that returns the examples at some indices as one batch."""

    def __len__(self) -> int: ...

    def batch(self, indices: Any) -> Any:
        """Return the examples at the indices."""


@runtime_checkable
class Loader(Protocol):
    """Iterable of batches with a position, such as a `DataLoader`."""

    def once(self) -> Iterator[Any]:
        """Return the batches of the epoch without changing the position."""


def without_moving(data: Iterable[Any]) -> Iterable[Any]:
    """Return the batches of data; reading them does not change the position of a loader.

    Args:
        data: An iterable of batches.
    """
    return data.once() if isinstance(data, Loader) else data


FitData: TypeAlias = TensorLike | BatchSource | Iterable[Any]
"""What `fit` accepts: an array, a dataset, or an iterable of batches such as a `DataLoader`."""


@register("features/extractor")
class FeatureExtractor(Module):
    """Base class of feature extractors: modules that are fitted to data and transform it.

    A subclass overrides `extract`. One that learns from data returns True as `needs_fit`, and
    overrides `update`, which adds a batch to the statistics, and `finish`, which computes the
    fitted values from them.
    Fitted values are Buffers, so that they are saved and move between backends.

    Used by itself, it returns its input, multiplied by the mask if there is one.

    Args:
        feature_dim: Number of features along the last axis. Default: any number.

    Shape: (..., features) -> (..., features).

    Example:
        >>> class Centered(nn.features.FeatureExtractor):
        ...     def extract(self, x):
        ...         return x - ops.mean(x, axis=0)
        >>> Centered()(ops.array([[1.0], [3.0]])).tolist()
        [[-1.0], [1.0]]
    """

    feature_dim: int | None = None
    in_features: int | None = None
    """Number of input features, known after `fit`."""

    def __init__(self, feature_dim: Size | None = None) -> None:
        self.feature_dim = self.in_features = feature_dim

    def extract(self, *args: Any, **kwargs: Any) -> Any:
        """Return the features of the input; subclasses define their own arguments.

        Args:
            *args: The input, with the features along the last axis, and optionally a mask that it
                is multiplied by.
            **kwargs: The same by name: `x` and `mask`.
        """
        return self._masked(*args, **kwargs)

    def _masked(self, x: TensorLike, mask: TensorLike | None = None) -> Tensor:
        x = self.as_input(x)
        if self.feature_dim is not None:
            self.check_width(x, self.feature_dim)
        return x if mask is None else ops.multiply(x, self.as_input(mask))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return `forward(*args, **kwargs)`, and run the hooks; arrays become tensors."""
        args = tuple(map(self.as_argument, args))
        kwargs = {name: self.as_argument(value) for name, value in kwargs.items()}
        if self._hooks is not None:
            return self._hooks.run(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def as_argument(self, value: Any) -> Any:
        """Return an argument of a call: an array as by `as_input`, other values unchanged.

        Args:
            value: The argument.
        """
        return self.as_input(value) if is_array(value) else value

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return `extract(*args, **kwargs)`."""
        return self.extract(*args, **kwargs)

    def transform(self, *args: Any, **kwargs: Any) -> Any:
        """Return the features of the input; the same as calling the module."""
        return self(*args, **kwargs)

    def inverse(self, x: TensorLike) -> Tensor:
        """Return the input that has the given features.

        Args:
            x: Features, as `extract` returns them.

        Raises:
            NotImplementedError: If the transform has no inverse.
        """
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def fit(self, data: FitData) -> Self:
        """Fit the extractor to data, forgetting what was fitted before; return the extractor.

        If a batch raises an error, the earlier fit is kept.

        Args:
            data: An array or tensor, a dataset, or an iterable of batches such as a `DataLoader`,
                whose position does not change. Of a batch that is a tuple, the first part is used.
                An iterable is read once, one batch at a time.
        """
        if not self.needs_fit:
            return self
        before = dict(vars(self))
        empty = True
        try:
            for batch in self.batches(data):
                if empty:
                    self.reset()
                self.update(batch)
                empty = False
            if empty:
                raise ArgumentError(f"{type(self).__name__}.fit: the data has no batches")
            self.finish()
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        return self

    def partial_fit(self, batch: Any) -> Self:
        """Update the fit with one more batch; return the extractor.

        Args:
            batch: An array, a tensor, or a tuple whose first part is one.
        """
        if self.needs_fit:
            self.update(self.as_batch(batch))
            self.finish()
        return self

    def fit_transform(self, data: TensorLike) -> Tensor:
        """Fit the extractor to an array, and return the features of the array.

        Args:
            data: Array or tensor.
        """
        x = self.as_batch(data)
        result: Tensor = self.fit(x)(x)
        return result

    def reset(self) -> None:
        """Forget what was fitted; called at the start of `fit`."""

    def update(self, batch: Any) -> None:
        """Add a batch to the statistics.

        Args:
            batch: A batch as `as_batch` returns it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update()")

    def finish(self) -> None:
        """Compute the fitted values from the statistics; called after the last `update`."""

    @property
    def needs_fit(self) -> bool:
        """Whether the extractor learns from data; otherwise `fit` does nothing."""
        return False

    @property
    def is_fitted(self) -> bool:
        """Whether the extractor can be used: True if it needs no fit."""
        return not self.needs_fit

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature along the last axis of the output."""
        self.check_fitted()
        if self.in_features is None:
            raise ArgumentError(
                f"{type(self).__name__}.feature_names: the number of features is not known; "
                "pass feature_dim"
            )
        return tuple(f"x{at}" for at in range(self.in_features))

    def check_fitted(self) -> None:
        """Raise a NotFittedError unless the extractor is fitted."""
        if not self.is_fitted:
            name = type(self).__name__
            raise NotFittedError(
                f"{name} is not fitted: call fit(data) or partial_fit(batch) first"
            )

    def check_width(self, x: Tensor, features: int) -> None:
        """Raise a ShapeError unless x has the given number of features along its last axis.

        Args:
            x: The input.
            features: Expected number of features.
        """
        if x.ndim == 0 or x.shape[-1] != features:
            raise ShapeError(
                f"{type(self).__name__}: expected {features} features along the last axis, got an "
                f"input of shape {x.shape}"
            )

    def set_in_features(self, features: int) -> None:
        """Set the number of input features, also in the config, so that the module can be loaded.

        Args:
            features: Number of input features.
        """
        self.in_features = features
        self.change_config(in_features=features)

    def change_config(self, **values: Any) -> None:
        """Replace fields of the config by fitted values; nothing if the class has no config.

        Args:
            **values: New values of fields.
        """
        if self.config is not None:
            self.config = type(self.config)(**{**dict(self.config), **values})

    def as_input(self, x: TensorLike) -> Tensor:
        """Return an argument of `extract` as a tensor.

        An array becomes a tensor on the module's backend. A floating-point array gets the dtype of
        the module's buffers; without buffers it keeps its dtype, if the backend has it.

        Args:
            x: Tensor, array or nested list of numbers.
        """
        if isinstance(x, EmberTensor):
            return x
        if any(_traversal.parts(self)[0]):
            (converted,) = as_tensors(self, (x,))
            return convert_to_tensor(converted)
        return self.as_batch(x)

    def as_batch(self, batch: Any) -> Any:
        """Return a batch of `fit` as a tensor.

        Args:
            batch: Tensor, array or nested list of numbers, or a tuple whose first part is one. An
                array keeps its dtype if the backend has it; otherwise float64 becomes float32.
        """
        if isinstance(batch, tuple) and batch:
            batch = batch[0]
        if isinstance(batch, EmberTensor):
            return batch
        if isinstance(batch, Mapping):
            raise ArgumentTypeError(
                f"{type(self).__name__}: a batch must be an array or a tuple, not a dict with keys "
                f"{', '.join(map(repr, batch))}; pass (batch[key] for batch in data)"
            )
        variable = next(iter(_traversal.named_variables(self)), None)
        backend = variable[1].backend if variable else runtime.active()
        known = runtime.load(backend).DTYPES
        dtype = str(getattr(batch, "dtype", "")).rpartition(".")[2]
        unsupported = dtype == "float64" and dtype not in known
        return convert_to_tensor(batch, float32 if unsupported else None, backend=backend)

    def batches(self, data: FitData) -> Iterator[Any]:
        """Yield the batches of the data that `fit` accepts.

        Args:
            data: As in `fit`.
        """
        if is_array(data):
            yield self.as_batch(data)
        elif isinstance(data, BatchSource):
            for start in range(0, len(data), ROWS_PER_BATCH):
                stop = min(start + ROWS_PER_BATCH, len(data))
                yield self.as_batch(data.batch(range(start, stop)))
        elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)):
            yield from map(self.as_batch, without_moving(data))
        else:
            raise ArgumentTypeError(
                f"{type(self).__name__}.fit: data must be an array, a dataset or an iterable of "
                f"batches, not {data!r:.60}"
            )


def is_array(data: object) -> bool:
    """Return whether data is one array or nested lists of numbers, not a sequence of batches."""
    return is_framework_array(data) or (
        isinstance(data, list) and type(first_element(data)) in PYTHON_TYPES
    )
