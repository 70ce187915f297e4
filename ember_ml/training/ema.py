"""Moving averages of a model's parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, wrap
from ember_ml.nn import Module, Parameter
from ember_ml.nn.functional import substitute
from ember_ml.nn.state_dict import checked_state
from ember_ml.training.optimizer.plan import kernels, state_dtype


class EMA:
    """The exponential moving average of a model's parameters, often better than the last ones.

    Averages of half-precision parameters are kept in float32. Buffers are the model's own.

    Args:
        model: whose parameters to average.
        decay: how much of the average stays at an update.
        warmup: begin with a smaller decay, (1 + n) / (10 + n) at update n, so that the first
            values are soon forgotten.

    Example:
        >>> from ember_ml import nn
        >>> from ember_ml.training.ema import EMA
        >>> layer = nn.layers.Dense(2, 1)
        >>> ema = EMA(layer, decay=0.99)
        >>> ema.update()
        >>> with ema.applied():
        ...     output = layer(ops.ones((1, 2)))
    """

    def __init__(self, model: Module, decay: float = 0.999, warmup: bool = True) -> None:
        if not 0.0 <= decay < 1.0:
            raise ArgumentError(f"EMA: decay must be at least 0 and below 1, not {decay!r}")
        self.model = model
        self.decay = decay
        self.warmup = warmup
        self._is_applied = False
        self.reset()

    def reset(self) -> None:
        """Begin anew, with the parameters as they are now for the average."""
        self.updates = 0
        self._averages = {
            name: convert_to_tensor(
                parameter, dtype=state_dtype(parameter), backend=parameter.backend, copy=True
            )
            for name, parameter in self._parameters().items()
        }

    def update(self) -> None:
        """Let the parameters as they are now enter the average."""
        if self._is_applied:
            raise ArgumentError("EMA.update: the parameters are the averages now; leave applied()")
        self.updates += 1
        for alike in self._alike():
            first = next(iter(alike.values()))
            k = kernels(first.backend)
            mixed = k.lerp_(
                [self._average(name, parameter)._data for name, parameter in alike.items()],
                k.cast([parameter._data for parameter in alike.values()], state_dtype(first)),
                1.0 - self._decay_now(),
            )
            made = [wrap(value, first.backend) for value in mixed]
            self._averages.update(zip(alike, made, strict=True))

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Let the model have the averages for its parameters within the block."""
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
        """The number of updates, and the averages by name under "tensors"."""
        tensors = {
            name: convert_to_tensor(average, copy=True) for name, average in self._averages.items()
        }
        return {"updates": self.updates, "tensors": tensors}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave, on any backend; nothing changes if it does not fit."""
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
        return dict(self.model.named_parameters())

    def _alike(self) -> list[dict[str, Parameter]]:
        """The parameters, together where backend and dtype are the same."""
        found: dict[str, dict[str, Parameter]] = {}
        for name, parameter in self._parameters().items():
            found.setdefault(parameter._tag, {})[name] = parameter
        return list(found.values())

    def _average(self, name: str, parameter: Parameter) -> Tensor:
        """The average where its parameter is now."""
        return convert_to_tensor(
            self._averages[name],
            dtype=state_dtype(parameter),
            device=parameter.device,
            backend=parameter.backend,
        )

    def _value(self, name: str, parameter: Parameter) -> Tensor:
        """A copy for the model: an update must not change what it gave out."""
        return convert_to_tensor(self._average(name, parameter), dtype=parameter.dtype, copy=True)
