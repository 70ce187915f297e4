"""Moving averages of a model's parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping
from typing import Any, Self

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import Module, Parameter
from ember_ml.nn.functional import substitute
from ember_ml.nn.state_dict import checked_state
from ember_ml.training.optimizer.plan import kernels, state_dtype


class EMA:
    """Exponential moving average of a model's parameters, often better than the last ones.

    Averages of half-precision parameters are float32. Buffers are not averaged.

    Args:
        model: The model.
        decay: Decay rate of the average.
        warmup: Whether to start with a smaller decay, (1 + n) / (10 + n) at update n, to forget
            the initial values.
        names: Names of the parameters to average. Default: all.

    Example:
        >>> from ember_ml import nn
        >>> from ember_ml.training.ema import EMA
        >>> layer = nn.layers.Dense(2, 1)
        >>> ema = EMA(layer, decay=0.99)
        >>> ema.update()
        >>> with ema.applied():
        ...     output = layer(ops.ones((1, 2)))
    """

    def __init__(
        self,
        model: Module,
        decay: float = 0.999,
        warmup: bool = True,
        names: Container[str] | None = None,
    ) -> None:
        if not 0.0 <= decay < 1.0:
            raise ArgumentError(f"EMA: decay must be at least 0 and below 1, not {decay!r}")
        self.model = model
        self.decay = decay
        self.warmup = warmup
        self._names = names
        self._is_applied = False
        self.reset()

    def reset(self) -> None:
        """Restart the average from the current parameters."""
        self.updates = 0
        self._averages = {
            name: convert_to_tensor(
                parameter, dtype=state_dtype(parameter), backend=parameter.backend, copy=True
            )
            for name, parameter in self._parameters().items()
        }

    def update(self) -> None:
        """Update the average with the current parameters."""
        if self._is_applied:
            raise ArgumentError("EMA.update: the parameters are the averages now; leave applied()")
        self.updates += 1
        for alike in self._alike():
            first = next(iter(alike.values()))
            k = kernels(first.backend)
            mixed = k.lerp_(
                [self._average(name, parameter).native for name, parameter in alike.items()],
                k.cast([parameter.native for parameter in alike.values()], state_dtype(first)),
                1.0 - self._decay_now(),
            )
            averages = [Tensor.from_native(value, first.backend) for value in mixed]
            self._averages.update(zip(alike, averages, strict=True))

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Replace the model's parameters by their averages within the context."""
        if self._is_applied:
            raise ArgumentError("EMA.applied: the averages are applied already")
        parameters = self._parameters()
        values = [self._value(name, parameter) for name, parameter in parameters.items()]
        self._is_applied = True
        try:
            with substitute(list(parameters.values()), values):
                yield
        finally:
            self._is_applied = False

    def state_dict(self) -> dict[str, Any]:
        """Return the number of updates, and the averages by name under "tensors"."""
        tensors = {
            name: convert_to_tensor(average, copy=True) for name, average in self._averages.items()
        }
        return {"updates": self.updates, "tensors": tensors}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state on any backend; if it does not fit, raise an error and change nothing."""
        parameters = self._parameters()

        def placed(name: str, value: Any) -> Tensor:
            like = parameters[name]
            where = {"device": like.device, "backend": like.backend}
            return convert_to_tensor(value, dtype=state_dtype(like), copy=True, **where)

        shapes = {name: parameter.shape for name, parameter in parameters.items()}
        self._averages = checked_state("EMA", shapes, state["tensors"], placed)
        self.updates = int(state["updates"])
        return self

    def _decay_now(self) -> float:
        if not self.warmup:
            return self.decay
        return min(self.decay, (1 + self.updates) / (10 + self.updates))

    def _parameters(self) -> dict[str, Parameter]:
        named = self.model.named_parameters()
        return {name: x for name, x in named if self._names is None or name in self._names}

    def _alike(self) -> list[dict[str, Parameter]]:
        """Return the parameters grouped by backend and dtype."""
        groups: dict[tuple[str, str], dict[str, Parameter]] = {}
        for name, parameter in self._parameters().items():
            groups.setdefault((parameter.backend, parameter.dtype.name), {})[name] = parameter
        return list(groups.values())

    def _average(self, name: str, parameter: Parameter) -> Tensor:
        """Return the average on the backend and device of its parameter."""
        return convert_to_tensor(
            self._averages[name],
            dtype=state_dtype(parameter),
            device=parameter.device,
            backend=parameter.backend,
        )

    def _value(self, name: str, parameter: Parameter) -> Tensor:
        """Return a copy of the average, which later updates do not change."""
        return convert_to_tensor(self._average(name, parameter), dtype=parameter.dtype, copy=True)
